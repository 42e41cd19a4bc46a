"""Specs say what is wanted in words: no name of the changed function, its file or its neighbours is in them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.seeded.measuring import PYTHON, SEED
from tests.seeded.mutations import Regression, masked, regressions
from tests.seeded.sdists import SDISTS, unpacked

COUNT = 15


@pytest.fixture(scope="module", params=PYTHON)
def seeded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Regression]]:
    root = unpacked(request.param, tmp_path_factory.mktemp("sdists") / "root")
    return root, regressions(root, SDISTS[request.param].package, count=COUNT, seed=SEED)


def test_a_spec_holds_no_name_of_its_function_or_its_file(seeded: tuple[Path, list[Regression]]) -> None:
    root, cases = seeded
    for case in cases:
        said = {word.lower() for word in re.findall(r"\w+", case.spec)}
        module = ast.parse((root / case.path).read_text())
        defined = {
            node.name.lower().strip("_")
            for node in ast.walk(module)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        place = {part.lower() for part in Path(case.path).with_suffix("").parts}
        assert said & (defined | place) == set(), case.function
        assert all(part.lower() not in said for part in case.function.split(".")), case.function


def test_there_are_ten_and_more_in_different_functions_and_each_changes_one_place(
    seeded: tuple[Path, list[Regression]],
) -> None:
    root, cases = seeded
    assert len(cases) >= 10
    assert len({(case.path, case.function) for case in cases}) == len(cases)
    for case in cases:
        before = (root / case.path).read_text()
        assert case.source != before
        assert ast.dump(ast.parse(case.source)) != ast.dump(ast.parse(before)), case.function
        assert abs(case.source.count("\n") - before.count("\n")) <= 12


def test_the_same_seed_gives_the_same_regressions_and_another_others(tmp_path: Path) -> None:
    root = unpacked("click", tmp_path / "click")
    first = regressions(root, SDISTS["click"].package, count=5, seed=1)
    assert regressions(root, SDISTS["click"].package, count=5, seed=1) == first
    assert regressions(root, SDISTS["click"].package, count=5, seed=2) != first


def test_names_are_taken_out_in_whatever_case_they_stand() -> None:
    assert masked("The Group of groups, a group_name", frozenset({"group"})) == "The … of groups, a group_name"


@pytest.mark.parametrize("name", ["qs", "minimist"])
def test_a_javascript_package_carries_its_tests(name: str, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path / name)
    assert list((root / SDISTS[name].tests).glob("*.js"))
