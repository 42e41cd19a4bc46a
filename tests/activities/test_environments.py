"""A project's dependencies: set up once in the sandbox, shown read-only, set up again when what decides changes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from activities.sandboxed.environments import Prepared, environment_key
from adapters.compliance.sandbox import until
from domain.environment.project import Setup
from domain.errors import InvalidInput, SetupFailed, TooLarge
from tests.activities.set_up_site import SLOW, Site, registry, simple

ROOT = Path(__file__).parents[2]
# A worker that is killed while it sets up.
KILLED = """
import asyncio, sys
from pathlib import Path
from tests.activities.set_up_site import SLOW, Site
asyncio.run(Site.at(Path(sys.argv[1]), SLOW).prepare("c"))
"""


@pytest.fixture
def port() -> Iterator[int]:
    with registry() as port:
        yield port


async def test_what_is_set_up_once_is_used_again_until_what_decides_changes(tmp_path: Path, port: int) -> None:
    site = Site.at(tmp_path, simple(f"http://localhost:{port}/one", registries=[f"localhost:{port}"]))
    first = await site.prepare("c")
    assert first.built
    assert first.bytes > 0
    again, other = await site.prepare("c"), await site.prepare("d")
    assert (again.key, again.built, again.bytes, again.log) == (first.key, False, first.bytes, "")
    assert other.built
    assert other.key != first.key
    assert [each.project for each in await site.kept.list()] == ["calc", "calc"]
    assert site.left() == []


async def test_a_later_run_sees_it_read_only_and_reaches_nobody(tmp_path: Path, port: int) -> None:
    site = Site.at(tmp_path, simple(f"http://localhost:{port}/one", registries=[f"localhost:{port}"]))
    prepared = await site.prepare("c")
    script = "cat deps/one; echo; touch deps/two || echo refused; env | grep -ci http_proxy="
    said = await site.run(prepared, "sh", "-c", script)
    assert said.splitlines()[0] == "the content of /one"
    assert said.splitlines()[-3:] == ["refused", "0", "1"]
    fetch = f"import urllib.request; urllib.request.urlopen('http://localhost:{port}/one', timeout=5)"
    assert "Connection refused" in await site.run(prepared, "python3", "-c", fetch)


async def test_another_host_is_refused_and_the_failure_names_it(tmp_path: Path, port: int) -> None:
    site = Site.at(tmp_path, simple("http://example.org/one", registries=[f"localhost:{port}", "example.org"]))
    with pytest.raises(SetupFailed, match=r"it asked for example\.org:80, which registries does not name") as failure:
        await site.prepare("c")
    assert "403" in str(failure.value)
    assert await site.kept.list() == []
    assert site.left() == []


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("sh", "-c", "echo reason >&2; exit 7"), "exited with 7; it said:\nreason"),
        (("sh", "-c", "echo fine"), "left no folder 'deps'; it said:\nfine"),
        (("sh", "-c", "ln -s /usr deps"), "left no folder 'deps'"),
    ],
)
async def test_a_set_up_that_leaves_nothing_fails_with_its_last_words(
    tmp_path: Path, command: tuple[str, ...], says: str
) -> None:
    site = Site.at(tmp_path, Setup(command=command, folder="deps", registries=()))
    with pytest.raises(SetupFailed) as failure:
        await site.prepare("c")
    assert says in str(failure.value)
    digest = str(failure.value).rpartition("blob ")[2].rstrip(")")
    assert (await site.blobs.get(digest)).decode() in ("reason\n", "fine\n", "")
    assert site.left() == []


async def test_limits_of_time_and_size_hold(tmp_path: Path) -> None:
    with pytest.raises(SetupFailed, match="did not end in time"):
        await Site.at(tmp_path, SLOW, setup_seconds=1.5).prepare("c")
    large = Setup(command=("sh", "-c", "mkdir deps; head -c 3000000 /dev/zero > deps/x"), folder="deps", registries=())
    with pytest.raises(TooLarge, match="larger than the 1000000 bytes"):
        await Site.at(tmp_path, large, environment_bytes=1_000_000).prepare("c")


async def test_a_project_without_a_set_up_has_nothing_to_prepare(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has no set-up"):
        await Site.at(tmp_path, None).prepare("c")


async def test_names_that_nobody_knows_are_asked_about_before_anything_runs(tmp_path: Path) -> None:
    commits = {"c": {"requirements.txt": "requests\n"}, "d": {"requirements.txt": "requests\nflask\nzz-new\nzz-more\n"}}
    made = Setup(command=("mkdir", "deps"), folder="deps", registries=(), packages=("zz-more",))
    site = Site.at(tmp_path, made, commits)
    assert await site.prepare("d", base="c") == Prepared(key="", unknown=("zz-new",))
    assert await site.kept.list() == []
    assert (await site.prepare("d", base="c", allowed=("zz-new",))).built
    assert not (await site.prepare("d", base="d")).built


async def test_what_a_list_includes_decides_and_is_read(tmp_path: Path) -> None:
    listed = {"requirements.txt": "-r deps/extra.txt\n"}
    commits = {"c": listed | {"deps/extra.txt": "requests\n"}, "d": listed | {"deps/extra.txt": "zz-hidden\n"}}
    site = Site.at(tmp_path, Setup(command=("mkdir", "env"), folder="env", registries=()), commits)
    assert (await site.prepare("d", base="c")).unknown == ("zz-hidden",)
    assert (await site.prepare("c")).key != (await site.prepare("d")).key


def test_each_thing_that_decides_changes_the_key() -> None:
    setup, files = simple(registries=["a"]), {"uv.lock": b"1"}
    keys = [
        environment_key(setup, files, tools="t"),
        environment_key(replace(setup, folder="x"), files, tools="t"),
        environment_key(replace(setup, registries=("b",)), files, tools="t"),
        environment_key(replace(setup, command=("x",)), files, tools="t"),
        environment_key(setup, {"uv.lock": b"2"}, tools="t"),
        environment_key(setup, {"a/uv.lock": b"1"}, tools="t"),
        environment_key(setup, files, tools="u"),
    ]
    assert len(set(keys)) == len(keys)
    assert environment_key(replace(setup, packages=("allowed",)), files, tools="t") == keys[0]


async def test_two_at_once_end_with_one_whole_environment(tmp_path: Path) -> None:
    made = Setup(command=("sh", "-c", "mkdir deps; echo whole > deps/x"), folder="deps", registries=())
    sites = [Site.at(tmp_path, made), replace(Site.at(tmp_path, made), root=tmp_path / "second")]
    (tmp_path / "second").mkdir()
    one, two = await asyncio.gather(*(site.prepare("c") for site in sites))
    assert one.key == two.key
    assert len(await sites[0].kept.list()) == 1
    assert await sites[0].run(one, "cat", "deps/x") == "whole\n0"
    assert sites[0].left() == []


def test_a_worker_that_is_killed_while_it_sets_up_leaves_nothing_that_counts(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(argv, cwd=ROOT) as worker:
        try:
            logs = tmp_path / "work"
            asyncio.run(until(lambda: any(path.read_text() == "up\n" for path in logs.glob("log-*/log")), seconds=60))
        finally:
            worker.send_signal(signal.SIGKILL)
    quick = replace(SLOW, command=("sh", "-ec", "mkdir deps; echo whole > deps/x"))
    site = Site.at(tmp_path, quick)
    assert asyncio.run(site.kept.list()) == []
    prepared = asyncio.run(site.prepare("c"))
    assert prepared.built
    assert asyncio.run(site.run(prepared, "sh", "-c", "ls deps")) == "x\n0"
    assert site.left() == []


async def test_an_environment_that_is_gone_is_said(tmp_path: Path) -> None:
    site = Site.at(tmp_path, Setup(command=("mkdir", "deps"), folder="deps", registries=()))
    prepared = await site.prepare("c")
    assert await site.kept.remove(prepared.key)
    with pytest.raises(SetupFailed, match="is not here"):
        await site.run(prepared, "true")


async def test_what_a_set_up_left_decides_nothing_that_is_shown(tmp_path: Path) -> None:
    secret = tmp_path / "secret" / "bin"
    secret.mkdir(parents=True)
    (secret / "python").write_text("#!/bin/sh\necho secret\n")
    (secret / "python").chmod(0o755)
    script = f"mkdir -p deps/bin; ln -s {secret}/python deps/bin/python; echo 'home = {secret}' > deps/pyvenv.cfg"
    site = Site.at(tmp_path, Setup(command=("sh", "-c", script), folder="deps", registries=()))
    assert "secret" not in (await site.run(await site.prepare("c"), "python")).replace(str(secret), "")
