"""The risk of a change: a published sum that explains itself line by line."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInput, UnknownName
from domain.risk.evidence import Evidence, Made, Past, Touched
from domain.risk.formula import checked_weights, score
from domain.risk.kinds import kinds_of
from domain.risk.policy import WEIGHTS, RiskPolicy

SMALL = Evidence(
    touched=Touched(files=2, lines=40, paths=("notes/tags.py", "tests/test_tags.py")),
    made=Made(tests=12, base_tests=10, reviewed="other"),
    past=Past(releases=10),
)
WILD = Evidence(
    touched=Touched(
        files=60,
        lines=5_000,
        novel=60,
        paths=("db/migrations/0007_drop.py", "app/auth/login.py", "pyproject.toml", ".github/workflows/ci.yml"),
    ),
    made=Made(green=False, tests=0, base_tests=10, attempts=6, high=3),
    past=Past(releases=4, failed=4),
)


def amount(evidence: Evidence, name: str) -> float:
    return next(term.amount for term in score(evidence).terms if term.name == name)


def made(**changes: Any) -> Evidence:
    return replace(SMALL, made=replace(SMALL.made, **changes))


def touching(*paths: str, **changes: Any) -> Evidence:
    return replace(SMALL, touched=Touched(files=len(paths), lines=10, paths=paths, **changes))


class TestTheSum:
    def test_a_small_tested_reviewed_change_is_far_below_every_limit(self) -> None:
        assert score(SMALL).value < 0.1

    def test_everything_at_its_worst_is_one_and_no_more(self) -> None:
        risk = score(WILD)
        assert risk.value == 1.0
        assert sum(term.share for term in risk.terms) > 1.0

    def test_a_migration_with_new_authentication_in_a_large_change_is_above_what_always_asks(self) -> None:
        large = Touched(files=40, lines=1_200, novel=20, paths=("db/migrations/1.sql", "app/auth.py", "uv.lock"))
        assert score(replace(SMALL, touched=large)).value > 0.7

    def test_its_lines_add_up_and_say_where_they_come_from(self) -> None:
        risk = score(SMALL)
        assert [term.name for term in risk.terms] == list(WEIGHTS)
        assert risk.value == pytest.approx(sum(term.share for term in risk.terms), abs=1e-3)
        assert risk.lines[0] == "files: 0.01 of 0.10, 2 files touched (full at 30)"
        assert risk.lines[-1] == f"risk: {risk.value:.2f}"

    def test_weights_of_the_project_replace_single_ones(self) -> None:
        policy = RiskPolicy(weights={"lines": 1.0, "failures": 0.0})
        risk = score(replace(SMALL, touched=replace(SMALL.touched, lines=800)), policy)
        assert {term.name: term.weight for term in risk.terms} == {**WEIGHTS, "lines": 1.0, "failures": 0.0}
        assert risk.value == 1.0

    def test_an_unknown_weight_lists_the_known_ones(self) -> None:
        with pytest.raises(UnknownName, match="unknown risk weight 'moon'; known: attempts, auth, ci, dependencies"):
            checked_weights({"moon": 0.1})

    @pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan"), float("inf")])
    def test_a_weight_that_is_none_is_refused(self, weight: float) -> None:
        with pytest.raises(InvalidInput, match="'ci' has to be from 0 to 1"):
            score(SMALL, RiskPolicy(weights={"ci": weight}))


class TestTheTerms:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"tests": 12}, 0.0),
            ({"tests": 10}, 0.5),
            ({"tests": 9}, 1.0),
            ({"tests": 0, "base_tests": 0}, 1.0),
            ({"tests": -1}, 0.5),
            ({"green": False}, 1.0),
            ({"missing": 1}, 1.0),
            ({"unknown": True}, 1.0),
        ],
    )
    def test_gate_margins(self, changes: dict[str, Any], expected: float) -> None:
        assert amount(made(**changes), "gates") == expected

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, 0.0),
            ({"reviewed": "weak"}, 0.25),
            ({"reviewed": ""}, 0.5),
            ({"high": 1}, 1.0),
            ({"medium": 3}, 1.0),
            ({"low": 2}, 0.2),
            ({"reviewed": "", "low": 1}, 0.6),
            ({"unknown": True}, 0.5),
        ],
    )
    def test_findings(self, changes: dict[str, Any], expected: float) -> None:
        assert amount(made(**changes), "findings") == pytest.approx(expected)

    @pytest.mark.parametrize(("attempts", "expected"), [(1, 0.0), (2, 1 / 3), (4, 1.0), (9, 1.0), (0, 0.0)])
    def test_attempts(self, attempts: int, expected: float) -> None:
        assert amount(made(attempts=attempts), "attempts") == pytest.approx(expected, abs=1e-4)

    @pytest.mark.parametrize(
        ("past", "expected"), [(Past(), 0.5), (Past(releases=8), 0.0), (Past(releases=8, failed=2), 0.5)]
    )
    def test_past_failures(self, past: Past, expected: float) -> None:
        assert amount(replace(SMALL, past=past), "failures") == expected

    def test_novelty_is_the_share_of_files(self) -> None:
        assert amount(touching("a.py", "b.py", novel=1), "novelty") == 0.5
        assert amount(replace(SMALL, touched=Touched()), "novelty") == 0.0

    def test_one_file_of_a_kind_is_enough_and_is_named(self) -> None:
        risk = score(touching("src/app.py", "db/migrations/0001.py", "db/migrations/0002.py"))
        line = next(line for line in risk.lines if line.startswith("migrations"))
        assert line == "migrations: 0.20 of 0.20, db/migrations/0001.py and 1 more"

    def test_paths_that_are_not_known_are_no_good_sign(self) -> None:
        hidden = replace(SMALL, touched=Touched(files=300, lines=10, paths=("a.py",) * 200))
        assert amount(hidden, "auth") == 0.5
        assert "100 are not known" in next(term.why for term in score(hidden).terms if term.name == "auth")


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("notes/tags.py", []),
        ("README.md", []),
        ("src/author.py", []),
        ("src/keyboard/tokenizer.py", []),
        ("docs/requirements.md", []),
        ("docs/ci.md", []),
        ("db/migrate/20240101_add.rb", ["migrations"]),
        ("alembic/versions/1.py", ["migrations"]),
        ("sql/cleanup.SQL", ["migrations"]),
        ("prisma/schema.prisma", ["migrations"]),
        ("app/auth.py", ["auth"]),
        ("app/user_permissions.go", ["auth"]),
        ("web/src/userLogin.ts", ["auth"]),
        ("src/OAuth2Client.java", ["auth"]),
        ("lib/jwt/verify.js", ["auth"]),
        ("pyproject.toml", ["dependencies"]),
        ("requirements-dev.txt", ["dependencies"]),
        ("requirements/base.in", ["dependencies"]),
        ("web/package-lock.json", ["dependencies"]),
        ("go.sum", ["dependencies"]),
        ("Cargo.lock", ["dependencies"]),
        (".github/workflows/test.yml", ["ci"]),
        (".gitlab-ci.yml", ["ci"]),
        ("Jenkinsfile", ["ci"]),
        ("deploy/Dockerfile", ["ci"]),
        ("docker-compose.prod.yml", ["ci"]),
        ("auth/migrations/0001_keys.py", ["migrations", "auth"]),
    ],
)
def test_a_path_tells_its_kinds(path: str, kinds: list[str]) -> None:
    found = kinds_of([path])
    assert sorted(found) == ["auth", "ci", "dependencies", "migrations"]
    assert [kind for kind, paths in found.items() if paths == (path,)] == kinds


@given(st.lists(st.text(max_size=300), max_size=5))
def test_any_path_can_be_asked_about(paths: list[str]) -> None:
    for found in kinds_of(paths).values():
        assert set(found) <= set(paths)


COUNTS = st.integers(0, 100_000)
EVIDENCE = st.builds(
    Evidence,
    touched=st.builds(Touched, files=COUNTS, lines=COUNTS, novel=COUNTS, paths=st.just(("a.py", "auth.py"))),
    made=st.builds(
        Made,
        unknown=st.booleans(),
        green=st.booleans(),
        tests=st.integers(-1, 50),
        base_tests=st.integers(-1, 50),
        attempts=st.integers(0, 20),
        missing=st.integers(0, 3),
        high=st.integers(0, 9),
        medium=st.integers(0, 9),
        low=st.integers(0, 90),
        reviewed=st.sampled_from(["", "weak", "other"]),
    ),
    past=st.builds(Past, releases=st.integers(0, 20), failed=st.integers(0, 20)),
)


@given(EVIDENCE)
def test_every_risk_lies_between_its_bounds_and_every_line_names_its_reason(evidence: Evidence) -> None:
    risk = score(evidence)
    assert 0.0 <= risk.value <= 1.0
    assert all(0.0 <= term.amount <= 1.0 and term.why for term in risk.terms)
    assert all(re.match(r"^\w+: \d\.\d\d", line) for line in risk.lines)


@given(EVIDENCE, st.sampled_from(["high", "medium", "low", "attempts"]), st.integers(1, 9))
def test_a_worse_history_is_never_less_risky(evidence: Evidence, name: str, more: int) -> None:
    worse = replace(evidence.made, **{name: getattr(evidence.made, name) + more})
    assert score(replace(evidence, made=worse)).value >= score(evidence).value


@given(EVIDENCE, st.sampled_from(["files", "lines"]), st.integers(1, 2_000))
def test_touching_more_is_never_less_risky(evidence: Evidence, name: str, more: int) -> None:
    quiet = replace(evidence, touched=replace(evidence.touched, novel=0))
    worse = replace(quiet.touched, **{name: getattr(quiet.touched, name) + more})
    assert score(replace(quiet, touched=worse)).value >= score(quiet).value
