"""A commit becomes one file, named by its digest: its tree, or what the project's build command leaves of it."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.delivery.artifacts import Artifacts, BuildArtifactInput, BuiltArtifact
from domain.build.project import Limits
from domain.delivery.project import Delivery
from domain.errors import ArtifactFailed, InvalidInput, IsolationMissing, TooLarge, UnknownName
from domain.ports.sandbox import SandboxResult, SandboxRun
from tests.activities.sandboxed import Shop, opened

FILES = {"app.py": "print('served')\n", "static/page.html": "<p>hello</p>\n", "Makefile": "all:\n"}


def delivery(*build: str, output: str = "out") -> Delivery:
    return Delivery(target="local", run=("python3", "app.py"), build=build, output=output)


def shell(script: str, *, output: str = "out") -> Delivery:
    return delivery("sh", "-c", script, output=output)


async def build(shop: Shop, *, project: str = "calc", allow_missing: tuple[str, ...] = ()) -> BuiltArtifact:
    artifacts = Artifacts(engine=shop.engine, workspaces=shop.workspaces, blobs=shop.blobs, bench=shop.bench)
    request = BuildArtifactInput(
        label=shop.label, project=project, commit="c", allow_missing=(*shop.missing, *allow_missing)
    )
    built = await ActivityEnvironment().run(artifacts.build_artifact, request)
    assert isinstance(built, BuiltArtifact)
    return built


async def contents(shop: Shop, built: BuiltArtifact) -> dict[str, str]:
    """The files of an artefact."""
    content = await shop.blobs.get(built.artifact)
    assert (hashlib.sha256(content).hexdigest(), len(content)) == (built.artifact, built.size)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        opened_files = ((member.name, tar.extractfile(member)) for member in tar if member.isreg())
        return {name: file.read().decode() for name, file in opened_files if file}


async def test_without_a_build_command_the_artefact_is_the_commits_tree(tmp_path: Path) -> None:
    shop = opened(tmp_path, delivery(), files=FILES)
    built = await build(shop)
    assert await contents(shop, built) == FILES
    assert (built.files, built.log) == (3, "")


async def test_two_runs_in_two_folders_give_the_same_artefact(tmp_path: Path) -> None:
    for how in (delivery(), shell("cp -r . /tmp/all && mv /tmp/all out")):
        one, two = opened(tmp_path / "one", how, files=FILES), opened(tmp_path / "two", how, files=FILES)
        assert (await build(one)).artifact == (await build(two)).artifact


async def test_the_build_commands_folder_is_the_artefact(tmp_path: Path) -> None:
    script = (
        "mkdir -p out/bin; tr a-z A-Z < app.py > out/bin/app; chmod 700 out/bin/app; ln -s bin/app out/start; echo ok"
    )
    shop = opened(tmp_path, shell(script), files=FILES)
    built = await build(shop)
    assert await contents(shop, built) == {"bin/app": "PRINT('SERVED')\n"}
    assert built.files == 2
    assert await shop.blobs.get(built.log) == b"ok\n"
    assert shop.left() == []


async def test_a_build_in_place_is_released_whole(tmp_path: Path) -> None:
    shop = opened(tmp_path, shell("echo new > made", output=""), files=FILES)
    assert await contents(shop, await build(shop)) == {**FILES, "made": "new\n"}


async def test_a_build_has_no_network_no_secret_and_a_fixed_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MENDWORK_CANARY", "canary-of-the-worker")
    shop = opened(tmp_path, shell("mkdir out; env > out/env; cat /proc/net/dev > out/net"), files=FILES)
    left = await contents(shop, await build(shop))
    assert "canary-of-the-worker" not in left["env"]
    assert "SOURCE_DATE_EPOCH=315532800" in left["env"]
    assert [line.split(":")[0].strip() for line in left["net"].splitlines() if ":" in line] == ["lo"]


async def test_a_build_that_fails_tells_its_end_and_keeps_its_whole_output(tmp_path: Path) -> None:
    shop = opened(
        tmp_path, shell("mkdir out; echo x > out/a; seq 1000; echo no rule to make it >&2; exit 2"), files=FILES
    )
    with pytest.raises(ArtifactFailed, match=r"exited with 2, saying at the end: ….*no rule to make it") as caught:
        await build(shop)
    log = str(caught.value).rpartition("blob ")[2].rstrip(")")
    assert (await shop.blobs.get(log)).startswith(b"1\n2\n")
    assert shop.left() == []


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo all done", "left no folder 'out' that can be read, saying: all done"),
        ("ln -s /etc out", "left no folder 'out'"),
        ("mkdir out", "no file to release"),
        ("mkdir out; mkfifo out/pipe", "pipe"),
        ("mkdir out; echo x > out/a; ln -s /etc/passwd out/l", "the link 'l' to '/etc/passwd'"),
        ("mkdir -p out/d; echo x > out/a; ln -s ../../.. out/d/l", "the link 'd/l'"),
        ("kill -9 $$", "exited with 137"),
    ],
)
async def test_what_cannot_be_released_is_told(tmp_path: Path, script: str, sentence: str) -> None:
    with pytest.raises(ArtifactFailed, match=sentence):
        await build(opened(tmp_path, shell(script), files=FILES))


async def test_a_build_out_of_time_is_told(tmp_path: Path) -> None:
    shop = opened(tmp_path, shell("sleep 60"), files=FILES, limits=Limits(test_seconds=0.7))
    with pytest.raises(ArtifactFailed, match="did not end in time"):
        await build(shop)


async def test_more_than_may_be_released_is_refused(tmp_path: Path) -> None:
    limits = Limits(test_seconds=30.0, artifact_bytes=50_000)
    for how in (delivery(), shell("mkdir out; mv big out/")):
        shop = opened(tmp_path, how, files={"big": "x" * 60_000}, limits=limits)
        with pytest.raises(TooLarge, match="50000 bytes"):
            await build(shop)
        assert shop.left() == []


async def test_a_setuid_program_is_released_as_an_ordinary_one(tmp_path: Path) -> None:
    shop = opened(tmp_path, shell("mkdir out; cp app.py out/app; chmod 4755 out/app"), files=FILES)
    content = await shop.blobs.get((await build(shop)).artifact)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert tar.getmember("app").mode == 0o755


async def test_a_link_of_the_commit_that_leads_out_is_refused(tmp_path: Path) -> None:
    shop = opened(tmp_path, delivery(), files=FILES)
    shop = replace(shop, workspaces=replace(shop.workspaces, links={"secret": "/root/.ssh"}))
    with pytest.raises(ArtifactFailed, match="the link 'secret'"):
        await build(shop)


async def test_only_a_project_of_the_allowlist_with_a_target_is_built(tmp_path: Path) -> None:
    with pytest.raises(UnknownName):
        await build(opened(tmp_path, delivery(), files=FILES), project="other")
    with pytest.raises(InvalidInput, match="no target"):
        await build(opened(tmp_path, None, files=FILES))


class Open:
    """A sandbox that cannot close the network, and says so as the port demands."""

    def missing(self) -> dict[str, str]:
        return {"network": "the network is open"}

    async def run(self, run: SandboxRun) -> SandboxResult:
        if "network" not in run.allow_missing:
            raise IsolationMissing("the network is open")
        raise AssertionError("model-written code of a project with a target ran with an open network")


async def test_a_sandbox_that_cannot_close_the_network_builds_nothing_whatever_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(IsolationMissing):
        await build(opened(tmp_path, shell("true"), files=FILES, sandbox=Open()), allow_missing=("network",))
