"""Every registered adapter passes its port's compliance suite somewhere in the tests."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, files, tree


def registered() -> Iterator[tuple[str, str, str]]:
    """Port's folder, adapter's name, ``module:factory``, from each registry."""
    for init in sorted(ROOT.glob("adapters/*/__init__.py")):
        package = importlib.import_module(f"adapters.{init.parent.name}")
        for registry in vars(package).values():
            if isinstance(registry, dict) and all(isinstance(v, str) and ":" in v for v in registry.values()):
                yield from ((init.parent.name, each, target) for each, target in registry.items())


def suites(path: Path) -> list[str]:
    """The classes of a test file that take a compliance suite over, also by another class of that file."""
    source = tree(path)
    taken = {
        alias.asname or alias.name
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("adapters.compliance.")
        for alias in node.names
    }
    found = []
    for node in source.body:
        if isinstance(node, ast.ClassDef) and taken & {ast.unparse(base) for base in node.bases}:
            taken.add(node.name)
            found.append(node.name)
    return found


def subject(test_class: str) -> str:
    """ "TestSqlite" tests "sqlite"."""
    return test_class.removeprefix("Test").lower()


@pytest.mark.parametrize(("port", "adapter", "target"), list(registered()))
def test_it_has_a_compliance_class(port: str, adapter: str, target: str) -> None:
    classes = [
        each
        for path in files("tests/adapters")
        if f"adapters.{port}" in path.read_text()
        for each in suites(path)
        if adapter.startswith(subject(each)) or subject(each).startswith(adapter)
    ]
    assert classes, f"no class Test{adapter.title()} takes a suite of adapters/compliance for {target}"


@pytest.mark.parametrize(("port", "adapter", "target"), list(registered()))
def test_what_it_names_exists(port: str, adapter: str, target: str) -> None:
    module, _, factory = target.partition(":")
    assert callable(getattr(importlib.import_module(module), factory))
