"""Small by budget: folders, files, functions. The tree alone tells the hexagon."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles

from tests.architecture.sources import PRODUCT, ROOT, files, name, tree

DEEPEST = 3
FILES_A_FOLDER = 12  # beside its __init__.py
LINES_A_FILE = 300
LINES_A_FUNCTION = 60
LINES_A_FUNCTION_P95 = 40
PARAMETERS = 5
NO_NAMES = ("util", "utils", "common", "helper", "helpers", "manager", "managers", "misc")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    """All functions of a file, methods and inner ones too."""
    for node in ast.walk(tree(path)):
        if isinstance(node, Function):
            yield node


def length(function: Function) -> int:
    """Its lines, without decorators."""
    return (function.end_lineno or 0) - function.lineno + 1


def parameters(function: Function) -> int:
    """How many it takes, without self and cls; those of a command of the command line are its options."""
    if any(ast.unparse(decorator).startswith("app.command(") for decorator in function.decorator_list):
        return 0
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return sum(argument.arg not in {"self", "cls"} for argument in named)


def test_no_folder_is_deeper_than_three() -> None:
    deep = {name(path) for path in files(*PRODUCT, "tests") if len(path.relative_to(ROOT).parts) - 1 > DEEPEST}
    assert deep == set()


def test_no_folder_holds_more_than_twelve_files() -> None:
    counts = Counter(name(path.parent) for path in files(*PRODUCT) if path.name != "__init__.py")
    assert {folder: count for folder, count in counts.items() if count > FILES_A_FOLDER} == {}


def test_no_module_is_named_after_nothing() -> None:
    vague = {name(path) for path in files(*PRODUCT, "tests") if {path.stem, path.parent.name} & set(NO_NAMES)}
    assert vague == set()


def test_no_file_is_longer_than_its_budget() -> None:
    lengths = {name(path): len(path.read_text().splitlines()) for path in files(*PRODUCT)}
    assert {path: lines for path, lines in lengths.items() if lines > LINES_A_FILE} == {}


def test_no_function_is_longer_than_its_budget() -> None:
    lengths = {f"{name(path)}:{each.name}": length(each) for path in files(*PRODUCT) for each in functions(path)}
    assert {where: lines for where, lines in lengths.items() if lines > LINES_A_FUNCTION} == {}
    assert quantiles(lengths.values(), n=20)[-1] <= LINES_A_FUNCTION_P95


def test_no_function_takes_more_than_five_parameters() -> None:
    counts = {f"{name(path)}:{each.name}": parameters(each) for path in files(*PRODUCT) for each in functions(path)}
    assert {where: count for where, count in counts.items() if count > PARAMETERS} == {}


def test_workflows_are_no_library() -> None:
    assert (ROOT / "workflows" / "__init__.py").read_text() == ""
