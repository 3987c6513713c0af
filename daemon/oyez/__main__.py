"""``python -m oyez`` is the command ``oyez``."""

import sys

from oyez.cli import main

sys.exit(main())
