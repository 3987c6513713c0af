"""Where tests find models."""

from __future__ import annotations

import pytest

from oyez import places
from oyez.errors import ModelError
from oyez.models.catalogue import Catalogue
from oyez.models.store import ModelStore


@pytest.fixture(scope="session")
def model_path():
    """The path of a model by its name; skips where it is not."""
    store = ModelStore(places.models_folder(), Catalogue.load())

    def path(name):
        try:
            return store.ready(name)
        except ModelError as error:
            pytest.skip(f"no model {name}: {error}; `scripts/test` fetches it")

    return path
