"""The audio thread's contract, read from the source: what ``oyez.rt`` may import and call.

See ``oyez/rt/__init__.py``. What is imported for annotations alone does not run and is left out.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import oyez.rt

SOURCE_ROOT = Path(oyez.rt.__file__).parents[2]
RT_MODULES = sorted(Path(oyez.rt.__file__).parent.glob("*.py"))

ALLOWED_IMPORTS = {
    "__future__",
    "collections",  # deque alone: its append and popleft are atomic
    "contextlib",
    "dataclasses",
    "enum",
    "math",
    "numpy",
    "os",  # for the calls below
    "select",
    "soxr",
    "threading",  # Thread alone
    "time",  # monotonic alone: a system call of the vDSO's
    "typing",
}
ALLOWED_OURS = {
    "oyez.audio.amplifier",
    "oyez.audio.levels",
    "oyez.audio.pcm",
    "oyez.audio.ports",
    "oyez.audio.recovery",
    "oyez.messages",
}
"""Pure modules, which are held to the same rules; and rt itself."""

ALLOWED_OF = {
    "collections": {"deque"},
    "contextlib": {"suppress"},
    "os": {
        *("eventfd", "eventfd_read", "eventfd_write", "close"),
        *("EFD_NONBLOCK", "EFD_CLOEXEC"),
    },
    "select": {"poll", "POLLIN"},
    "threading": {"Thread"},
    "time": {"monotonic"},
}
FORBIDDEN_CALLS = {
    *("open", "print", "input", "exec", "eval", "compile", "__import__"),
    *("sleep", "acquire", "join", "getLogger", "Lock", "RLock", "Condition", "Semaphore", "Event"),
    *("Queue", "SimpleQueue"),
}
SILENT = {"Exception", "BaseException"}


class Reader(ast.NodeVisitor):
    """Collects what a module imports when it runs, and what of it breaks the contract."""

    def __init__(self):
        self.imports = set()
        self.faults = []

    def visit_If(self, node):
        if is_type_checking(node.test):
            for child in node.orelse:
                self.visit(child)
        else:
            self.generic_visit(node)

    def visit_Import(self, node):
        for name in node.names:
            self._take(name.name, node)
            if name.asname and name.name in ALLOWED_OF:
                self._fault(node, f"hides {name.name} behind another name")

    def visit_ImportFrom(self, node):
        if node.level:
            self._fault(node, "a relative import")
            return
        for name in node.names:
            dotted = f"{node.module}.{name.name}"
            self._take(dotted if is_module_of_ours(dotted) else node.module, node)
            self._check_of(node.module, name.name, node)

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name):
            self._check_of(node.value.id, node.attr, node)
        self.generic_visit(node)

    def visit_Call(self, node):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in FORBIDDEN_CALLS:
            self._fault(node, f"calls {name}()")
        if name == "suppress" and SILENT.intersection(map(ast.unparse, node.args)):
            self._fault(node, "suppresses every exception")
        self.generic_visit(node)

    def visit_ExceptHandler(self, node):
        handles = any(isinstance(part, ast.Call | ast.Raise) for part in ast.walk(node))
        if (node.type is None or ast.unparse(node.type) in SILENT) and not handles:
            self._fault(node, "lets an exception pass silently")
        self.generic_visit(node)

    def visit_With(self, node):
        for item in node.items:
            if "suppress" not in ast.unparse(item.context_expr):
                self._fault(node, f"enters {ast.unparse(item.context_expr)}")
        self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node):
        self._fault(node, "is asynchronous")

    def _take(self, module, node):
        self.imports.add(module)
        ours = module.startswith("oyez.rt.") or module in ALLOWED_OURS
        if not ours and module.split(".")[0] not in ALLOWED_IMPORTS:
            self._fault(node, f"imports {module}")

    def _check_of(self, module, name, node):
        if name not in ALLOWED_OF.get(module, {name}):
            self._fault(node, f"uses {module}.{name}")

    def _fault(self, node, what):
        self.faults.append(f"line {node.lineno} {what}")


def is_type_checking(test):
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def is_module_of_ours(dotted):
    path = SOURCE_ROOT.joinpath(*dotted.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def read(source):
    reader = Reader()
    reader.visit(ast.parse(source))
    return reader


def path_of(module):
    return SOURCE_ROOT.joinpath(*module.split(".")).with_suffix(".py")


@pytest.mark.parametrize("path", RT_MODULES, ids=lambda path: path.name)
def test_a_module_of_rt_keeps_the_contract(path):
    assert read(path.read_text("utf-8")).faults == []


@pytest.mark.parametrize("module", sorted(ALLOWED_OURS))
def test_a_module_that_rt_may_import_keeps_it_too(module):
    reader = read(path_of(module).read_text("utf-8"))
    assert reader.faults == []
    assert {name for name in reader.imports if name.startswith("oyez")} <= ALLOWED_OURS


def test_all_modules_of_rt_are_read():
    names = {path.stem for path in RT_MODULES}
    assert {"audio_thread", "front_end", "ring", "mailbox", "wake"} <= names


def test_nothing_on_the_list_of_imports_is_there_without_use():
    used = set().union(*(read(path.read_text("utf-8")).imports for path in RT_MODULES))
    used |= set().union(*(read(path_of(ours).read_text("utf-8")).imports for ours in ALLOWED_OURS))
    assert {name.split(".")[0] for name in used} == ALLOWED_IMPORTS | {"oyez"}
    assert used >= ALLOWED_OURS


@pytest.mark.parametrize(
    "source",
    [
        "import logging",
        "import queue",
        "import random",
        "import os.path, subprocess",
        "from pathlib import Path",
        "from threading import Lock",
        "from . import ring",
        "from oyez.audio import wav",
        "from oyez.speech.engines import make_vad",
        "import oyez.config",
        "import threading\nthreading.Condition",
        "import os\nos.write(1, b'')",
        "import os as system",
        "import collections\ncollections.Counter()",
        "open('x')",
        "print('x')",
        "def f(lock):\n    lock.acquire()",
        "def f(lock):\n    with lock:\n        pass",
        "def f(thread):\n    thread.join()",
        "from typing import Any\ndef f(clock: Any):\n    clock.sleep(1)",
        "try:\n    f()\nexcept:\n    pass",
        "try:\n    f()\nexcept Exception:\n    x = 1",
        "import contextlib\nwith contextlib.suppress(Exception):\n    f()",
        "def f():\n    import logging",
        "if not TYPE_CHECKING:\n    import logging",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import logging",
        "async def f():\n    pass",
    ],
)
def test_a_breach_of_the_contract_is_found(source):
    assert read(source).faults


@pytest.mark.parametrize(
    "source",
    [
        "if TYPE_CHECKING:\n    from oyez.audio.ports import Capture",
        "import numpy as np\nnp.zeros(3)",
        "from oyez.rt.ring import Flag",
        "from oyez.audio import pcm",
        "import contextlib\nwith contextlib.suppress(BlockingIOError):\n    f()",
        "try:\n    f()\nexcept Exception as error:\n    tell(error)",
    ],
)
def test_what_the_contract_allows_passes(source):
    assert read(source).faults == []
