"""Real packages, each with a line changed: set up from their own manifests, judged by their own tests, mended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.adapters.odd_files import Stored, raw, tree_of
from tests.e2e.projects import Scene, events
from tests.e2e.real.packages import PACKAGES, Package
from tests.e2e.workshop import Ran, Workshop, git
from tests.seeded.sdists import unpacked

pytestmark = pytest.mark.timeout(900)  # the first one waits for all builds, and for what they fetch
AT_ONCE = 2
"""Builds side by side: as many as a small machine has cores."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """One package's build, and where it was made."""

    package: Package
    at: Workshop
    ran: Ran
    build: str

    @property
    def repository(self) -> Path:
        return self.at.root / scene(self.package).project

    def told(self, kind: str, *, attempt: int = 0) -> Mapping[str, Any]:
        """The data of the one event of this kind."""
        (event,) = (e for e in events(self.at, self.build) if e.kind == kind and attempt in (0, e.attempt))
        return event.data

    def blob(self, digest: str) -> bytes:
        return (self.at.state / "blobs" / digest[:2] / digest[2:]).read_bytes()

    def failing(self, baseline: str) -> list[str]:
        """The tests that a baseline says fail."""
        tests: dict[str, str] = json.loads(self.blob(baseline))["tests"]
        return sorted(name for name, outcome in tests.items() if outcome in ("failed", "error"))

    def tree(self, commit: str) -> dict[bytes, Stored]:
        return tree_of(self.repository, commit)


def scene(package: Package) -> Scene:
    """As the other scenarios name projects and answers."""
    return Scene(
        name=package.name,
        answers=tuple(package.answers()),
        files={},
        more=package.section(),
        test=package.test,
    )


def seed(package: Package, folder: Path) -> None:
    """The package as it was published, but for one line, as a repository with one commit."""
    unpacked(package.name, folder)
    file = folder / package.path
    text = file.read_bytes().decode()
    assert text.count(package.right) == 1
    file.write_bytes(text.replace(package.right, package.seeded).encode())
    git(folder, "init", "-q", "-b", "main")
    git(folder, "-c", "core.autocrlf=false", "add", "-A", "--force")
    git(folder, "commit", "-q", "-m", "start")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Built]]:
    """All of them on one running Mendwork, each from its spec to its end."""
    at = Workshop(tmp_path_factory.mktemp("real") / "w")
    scenes = {package.name: scene(package) for package in PACKAGES}
    at.answers.write_text(yaml.safe_dump([entry for each in scenes.values() for entry in each.script()]))
    for package in PACKAGES:
        seed(package, at.root / scenes[package.name].project)
        (at.root / f"{package.name}.md").write_text(package.spec)
    with at.running(extra="".join(each.section() for each in scenes.values())), ThreadPoolExecutor(AT_ONCE) as pool:
        yield {each.package.name: each for each in pool.map(lambda package: build(at, package), PACKAGES)}


def build(at: Workshop, package: Package) -> Built:
    project = scene(package).project
    ran = at.mendwork("build", f"{package.name}.md", "--project", project, seconds=600.0)
    return Built(package=package, at=at, ran=ran, build=f"build-{project}-1")


@pytest.fixture(params=[package.name for package in PACKAGES])
def one(request: pytest.FixtureRequest, built: dict[str, Built]) -> Built:
    return built[request.param]


def test_the_changed_line_is_mended_and_nothing_else_is_touched(one: Built) -> None:
    assert one.ran.code == 0, one.ran.err
    package, branch = one.package, f"mendwork/{one.build}"
    before, after = one.tree("main"), one.tree(branch)
    seeded = raw(one.repository, "cat-file", "blob", f"main:{package.path}").decode()
    mended = raw(one.repository, "cat-file", "blob", f"{branch}:{package.path}").decode()
    assert mended == seeded.replace(package.seeded, package.right)
    assert raw(one.repository, "cat-file", "blob", f"{branch}:{package.check[0]}").decode() == package.check[1]
    del before[package.path.encode()], after[package.path.encode()], after[package.check[0].encode()]
    assert after == before


def test_what_fails_before_anybody_changes_anything_is_known(one: Built) -> None:
    base = one.told("build.base")
    assert (base["usable"], base["green"], base["flaky"]) == (True, False, 0)
    assert base["ran"] > 100
    assert base["failing"] > len(one.package.known)
    failed = one.failing(base["baseline"])
    assert len(failed) == base["failing"]
    for name in one.package.known:
        assert any(name in each for each in failed), failed


def test_the_first_attempt_is_red_for_its_own_failures(one: Built) -> None:
    gates = one.told("gates.ran", attempt=1)
    assert not gates["green"]
    assert gates["new"] >= 1
    assert gates["lost"] == 0
    assert one.package.new in one.blob(gates["report"]).decode()


def test_the_second_attempt_is_green_beside_what_is_known(one: Built) -> None:
    gates = one.told("gates.ran", attempt=2)
    assert (gates["green"], gates["new"], gates["lost"]) == (True, 0, 0), gates["reason"]
    assert gates["fixed"] >= 1
    assert gates["known"] == len(one.package.known)
    failed = one.failing(gates["baseline"])
    assert len(failed) == len(one.package.known)
    assert all(any(name in each for each in failed) for name in one.package.known), failed


def test_dependencies_are_set_up_once_for_all_runs(one: Built) -> None:
    assert one.told("environment.built")["bytes"] > 100_000


def test_compiled_dependencies_are_among_them(built: dict[str, Built]) -> None:
    one = built["jinja2"]
    kept = one.at.state / "environments" / one.told("environment.built")["key"]
    assert list(kept.rglob("_speedups*.so"))
