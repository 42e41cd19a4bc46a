"""The real tools set projects up. pip has a stand-in for its registry, the others their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from domain.environment.detect import GO, NPM, PYPI, detected
from tests.activities.set_up_site import Site, registry


@pytest.fixture
def port() -> Iterator[int]:
    with registry() as port:
        yield port


async def test_pip_installs_from_the_named_registry_and_tests_start_its_programs(tmp_path: Path, port: int) -> None:
    commits = {"c": {"requirements.txt": f"--index-url http://localhost:{port}/simple/\ntiny==1.0\n"}}
    (found,) = detected({path: text.encode() for path, text in commits["c"].items()})
    site = Site.at(tmp_path, replace(found.setup, registries=(f"localhost:{port}",)), commits)
    prepared = await site.prepare("c")
    assert await site.run(prepared, "tiny") == "tiny runs\n0"
    where = "import sys, tiny; print(sys.prefix, tiny.__file__.startswith(sys.prefix))"
    assert await site.run(prepared, "python", "-c", where) == "/work/.venv True\n0"
    assert "Read-only file system" in await site.run(prepared, "touch", ".venv/bin/more")


async def test_uv_sets_up_a_project_from_its_own_registry(tmp_path: Path) -> None:
    text = '[project]\nname = "own"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = ["iniconfig==2.0.0"]\n'
    commits = {"c": {"pyproject.toml": f"{text}[tool.uv]\npackage = false\n"}}
    (found,) = detected({path: text.encode() for path, text in commits["c"].items()})
    assert (found.name, found.setup.registries) == ("uv", PYPI)
    site = Site.at(tmp_path, found.setup, commits)
    prepared = await site.prepare("c")
    version = "import iniconfig, importlib.metadata as all; print(all.version('iniconfig'))"
    assert await site.run(prepared, "python", "-c", version) == "2.0.0\n0"
    assert not (await site.prepare("c")).built


async def test_npm_installs_what_node_finds(tmp_path: Path) -> None:
    commits = {"c": {"package.json": '{"name": "own", "version": "1.0.0", "dependencies": {"is-odd": "3.0.1"}}'}}
    (found,) = detected({path: text.encode() for path, text in commits["c"].items()})
    assert (found.name, found.setup.registries) == ("npm", NPM)
    site = Site.at(tmp_path, found.setup, commits)
    prepared = await site.prepare("c")
    assert await site.run(prepared, "node", "-e", "console.log(require('is-odd')(3))") == "true\n0"


async def test_go_downloads_modules_and_lists_them_without_a_network(tmp_path: Path) -> None:
    commits = {"c": {"go.mod": "module own\n\ngo 1.21\n\nrequire github.com/google/uuid v1.6.0\n"}}
    (found,) = detected({path: text.encode() for path, text in commits["c"].items()})
    assert (found.name, found.setup.registries) == ("go", GO)
    site = Site.at(tmp_path, found.setup, commits)
    prepared = await site.prepare("c")
    source = 'package own\n\nimport "github.com/google/uuid"\n\nvar ID = uuid.Nil\n'
    said = await site.run(
        prepared, "go", "list", "-deps", "-f", "{{.Dir}}", "./...", go_mod=commits["c"]["go.mod"], own_go=source
    )
    assert "/work/.gomodcache/github.com/google/uuid@v1.6.0\n" in said
    assert said.endswith("\n0")
