"""domain/ is the standard library and pure; workflows/ are deterministic. Temporal's sandbox does not look there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import HEXAGON, PRODUCT, ROOT, files, name, tree

IMPURE_MODULES = frozenset(
    {
        *("asyncio", "ctypes", "multiprocessing", "signal", "subprocess", "threading"),
        *("glob", "io", "os", "shutil", "sqlite3", "tempfile"),
        *("http", "socket", "ssl", "urllib.request"),
        *("random", "secrets", "time"),
    }
)
IMPURE_CALLS = frozenset(
    {
        *("open", "print", "input", "exec", "eval", "breakpoint", "__import__"),
        *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
        *("uuid.uuid1", "uuid.uuid4", "uuid.getnode", "platform.node"),
        *("pathlib.Path", "pathlib.PosixPath", "os.environ", "os.getenv"),
        *("asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell", "asyncio.to_thread"),
    }
)
ALLOWED_IN_WORKFLOWS = frozenset({"asyncio"})  # its loop there is Temporal's, with durable timers
ALLOWED_IN_PORTS = frozenset({"pathlib.Path"})  # as a type that adapters take and give
READS_ENVIRONMENT = (
    *("worker.py", "setup/bootstrap.py", "adapters/cli/", "adapters/models/scripted/__main__.py"),
    "adapters/models/engine.py",  # litellm is configured by variables that it reads when it is imported
    "adapters/compliance/",
)


def impurities(source: ast.Module, *, allowed: frozenset[str] = frozenset()) -> list[str]:
    """What is imported or named in ``source`` that has no place in pure code, with its line."""
    names = dict(_bindings(source))
    bad_modules, bad_calls = IMPURE_MODULES - allowed, IMPURE_CALLS - allowed
    found = [
        f"{line}: {origin}"
        for origin, line in _imports(source)
        if any(_inside(origin, module) for module in bad_modules) or origin in bad_calls
    ]
    for node in ast.walk(source):
        if isinstance(node, ast.Name | ast.Attribute):
            dotted = _dotted(node, names)
            if dotted in bad_calls and not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
                found.append(f"{node.lineno}: {dotted}")
    return found


def _inside(dotted: str, module: str) -> bool:
    return dotted == module or dotted.startswith(f"{module}.")


def _imports(source: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def _bindings(source: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return ""


@pytest.mark.parametrize("path", files("domain"), ids=name)
def test_the_domain_is_pure(path: Path) -> None:
    allowed = ALLOWED_IN_PORTS if "ports" in path.parts else frozenset[str]()
    assert impurities(tree(path), allowed=allowed) == []


@pytest.mark.parametrize("path", files("workflows"), ids=name)
def test_workflows_are_deterministic(path: Path) -> None:
    assert impurities(tree(path), allowed=ALLOWED_IN_WORKFLOWS) == []


@pytest.mark.parametrize("path", files("domain"), ids=name)
def test_the_domain_needs_the_standard_library_only(path: Path) -> None:
    roots = {origin.partition(".")[0] for origin, _ in _imports(tree(path))}
    assert roots - sys.stdlib_module_names - {"domain"} == set()


def test_nothing_imports_the_entry_points() -> None:
    importers = {
        name(path)
        for path in files(*HEXAGON)
        for origin, _ in _imports(tree(path))
        if origin.partition(".")[0] in {"worker", "starter", "tests", "setup"}
    }
    assert importers == set()


def test_only_entry_points_read_the_environment() -> None:
    readers = {name(path) for path in files(*PRODUCT) if _reads_environment(tree(path))}
    assert {reader for reader in readers if not reader.startswith(READS_ENVIRONMENT)} == set()


def _reads_environment(source: ast.Module) -> bool:
    names = dict(_bindings(source))
    expressions = (node for node in ast.walk(source) if isinstance(node, ast.Attribute | ast.Name))
    return any(_dotted(node, names) in {"os.environ", "os.getenv"} for node in expressions)


def test_every_driven_adapter_is_in_the_import_contracts() -> None:
    folders = {f"adapters.{path.parent.name}" for path in ROOT.glob("adapters/*/__init__.py")}
    contracts = (ROOT / ".importlinter").read_text(encoding="utf-8").split("[importlinter:contract:")
    for contract in contracts:
        if contract.startswith(("driven", "apart", "inbound")):
            listed = {line.strip() for line in contract.splitlines()}
            assert folders - listed - {"adapters.cli", "adapters.compliance"} == set(), contract.splitlines()[0]


@pytest.mark.parametrize(
    "source",
    [
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime as clock\nclock.utcnow()",
        "from datetime import date\ndate.today()",
        "import random",
        "from random import choice",
        "import time as t",
        "from uuid import uuid4",
        "import uuid\nuuid.uuid1()",
        "import os\nos.getenv('x')",
        "from os import environ",
        "open('x')",
        "print(1)",
        "import subprocess",
        "import asyncio\nasyncio.sleep(1)",
        "from pathlib import Path",
        "import urllib.request",
    ],
)
def test_the_check_sees(source: str) -> None:
    assert impurities(ast.parse(source)) != []


@pytest.mark.parametrize(
    "source",
    [
        "from datetime import datetime, UTC\ndatetime.fromtimestamp(0, UTC)",
        "from pathlib import PurePosixPath",
        "import uuid\nuuid.uuid5",
        "from temporalio import workflow\nworkflow.now(); workflow.uuid4(); workflow.random()",
        "import urllib.parse",
        "def f(time): return time.now()",
    ],
)
def test_the_check_lets_pass(source: str) -> None:
    assert impurities(ast.parse(source)) == []
