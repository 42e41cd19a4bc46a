"""Merging in the mirror: what fits together, people's histories, and nothing of theirs run."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.compliance.user_repository import operation, request
from adapters.git.adapter import GitPorts
from domain.errors import InvalidInput
from domain.ports.workspace import RebaseRequest
from tests.adapters.git_scenes import EXECUTABLE, GONE, LINES, Scene, edited
from tests.adapters.test_git_landing import arm, everything


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


CLEAN: dict[str, tuple[dict[str, object], dict[str, object], dict[str, object], dict[str, bytes]]] = {
    "a renamed file keeps the other side's edit": (
        {"old": LINES}, {"old": GONE, "new": LINES}, {"old": edited(4, "four")}, {"new": edited(4, "four")},
    ),
    "a mode and a content": ({"x": LINES}, {"x": EXECUTABLE}, {"x": edited(1, "x")}, {"x": edited(1, "x")}),
    "a link beside a text": ({"link": "a", "text": LINES}, {"link": "b"}, {"text": b"x"}, {"link": b"b", "text": b"x"}),
    "a binary of one side": ({"x": b"\0a", "y": b"1"}, {"x": b"\0b"}, {"y": b"2"}, {"x": b"\0b", "y": b"2"}),
    "line ends are bytes": (
        {"dos": LINES.replace(b"\n", b"\r\n"), ".gitattributes": b"* text=auto eol=lf\n"},
        {"dos": edited(2, "two").replace(b"\n", b"\r\n")},
        {"dos": edited(30, "mine").replace(b"\n", b"\r\n")},
        {"dos": edited(2, "two").replace(b"line 30\n", b"mine\n").replace(b"\n", b"\r\n")},
    ),
    "both sides did the same": ({"x": b"1"}, {"x": b"2"}, {"x": b"2", "more": b"3"}, {"x": b"2", "more": b"3"}),
    "a union of lines is not made, whatever the attributes say": (
        {"x": LINES, ".gitattributes": b"* merge=union\n"}, {"x": edited(2, "2")}, {"x": edited(9, "9")},
        {"x": edited(2, "2").replace(b"line 9\n", b"9\n")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLEAN)
async def test_what_fits_is_merged_byte_for_byte(scene: Scene, name: str) -> None:
    *sides, expected = CLEAN[name]
    done = await scene.merge(*sides)
    assert (done.conflicts, done.report) == ((), "")
    for path, content in expected.items():
        assert await scene.content(done.commit, path) == content


async def test_text_that_looks_like_a_conflict_is_no_conflict(scene: Scene) -> None:
    fake = b"<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n"
    done = await scene.merge({"doc": fake + LINES}, {"doc": fake + edited(2, "2")}, {"doc": fake + edited(30, "30")})
    assert done.conflicts == ()
    assert (await scene.content(done.commit, "doc")).startswith(fake)


async def test_hostile_paths_stay_paths(scene: Scene) -> None:
    names = ("--help", ":(top)x", "*", "a b\tc", "größe", "x~HEAD", "é\n")
    base = dict.fromkeys(names, LINES)
    done = await scene.merge({**base}, dict.fromkeys(names, edited(1, "1")), dict.fromkeys(names[:3], edited(30, "30")))
    assert done.conflicts == ()
    assert done.touched == tuple(sorted(names[:3]))


async def test_a_merge_in_a_persons_work_keeps_its_resolution(scene: Scene) -> None:
    scene.branch("base", "", {"x": LINES})
    scene.branch("ours", "base", {"x": edited(4, "newer"), "b": b"1"})
    scene.branch("theirs", "base", {"x": edited(4, "mine"), "y": b"1"})
    scene.user.git("merge", "--quiet", "--no-commit", "--strategy=ours", "ours")
    resolved = scene.branch("theirs", "", {"x": edited(4, "both"), "b": b"1"})
    await scene.known()
    assert (await scene.rebase(base="ours")).commit == resolved
    newest = scene.branch("newest", "ours", {"more": b"1"})
    await scene.ports.mirrors.fetch_base(scene.user.project(branch="newest"), build="newest")
    taken = await scene.ports.merges.take(scene.user.project(), build="b1", onto=newest, name="theirs")
    assert taken.base == scene.user.git("rev-parse", "ours")
    done = await scene.rebase(onto="newest", base="ours")
    assert done.touched == ("x", "y")
    assert await scene.content(done.commit, "x") == edited(4, "both")
    assert (await scene.ports.merges.target(scene.user.project(branch="newest"), build="b1")) == newest


async def test_a_long_chain_stays_a_chain_and_a_very_long_one_becomes_one_commit(scene: Scene) -> None:
    scene.branch("base", "", {"x": LINES})
    ours = scene.branch("ours", "base", {"other": b"1"})
    for name, count in (("theirs", 40), ("endless", 201)):
        commands = [f"commit refs/heads/{name}\ncommitter P <p@h> {1000 + n} +0000\ndata 1\n{n % 10}\n"
                    f"{'' if n else 'from refs/heads/base' + chr(10)}M 100644 inline f{n % 7}\ndata 4\n{n:04}\n"
                    for n in range(count)]  # fmt: skip
        (scene.folder / "stream").write_text("".join(commands))
        scene.user.git("-c", "alias.load=!cat ../stream | git fast-import --quiet", "load")
    await scene.known()
    for name, count in (("theirs", 40), ("endless", 1)):
        done = await scene.rebase(head=name)
        assert done.touched == tuple(f"f{n}" for n in range(7))
        await scene.ports.landing.land(scene.user.project(), build=name, commit=done.commit)
        assert scene.user.git("rev-list", "--count", f"{ours}..{done.commit}") == str(count)
        assert scene.user.git("diff", "--name-only", name, done.commit) == "other"


def signed(scene: Scene, name: str) -> str:
    """The commit of a branch again, with a signature, an encoding and a message that is not plain."""
    head, _, message = scene.user.git("cat-file", "commit", name).partition("\n\n")
    signature = f"encoding latin-1\ngpgsig -----BEGIN\n tree {'0' * 40}\n -----END\n"
    (scene.folder / "raw").write_text(f"{head}\n{signature}\n{message}\n\nBody\x01 tail\n")
    commit = scene.user.git("hash-object", "-t", "commit", "-w", str(scene.folder / "raw"))
    scene.user.git("update-ref", f"refs/heads/{name}", commit)
    return commit


async def test_a_signature_does_not_outlive_what_it_signed(scene: Scene) -> None:
    scene.branch("base", "", {"x": LINES})
    scene.branch("ours", "base", {"other": b"1"})
    scene.branch("theirs", "base", {"x": edited(1, "mine")})
    head = scene.user.git("cat-file", "commit", "theirs").split("\n")
    commit = signed(scene, "theirs")
    await scene.known()
    done = await scene.rebase()
    await scene.ports.landing.land(scene.user.project(), build="b1", commit=done.commit)
    written = scene.user.git("cat-file", "commit", done.commit).split("\n")
    assert written[2:] == [*head[2:4], "encoding latin-1", *head[4:], "", "Body\x01 tail"]
    assert (await scene.rebase(onto="base")).commit == commit


async def test_a_commit_that_lies_on_top_already_stays_as_it_is(scene: Scene) -> None:
    scene.branch("base", "", {"x": LINES})
    scene.branch("ours", "base", {"other": b"1"})
    scene.branch("theirs", "ours", {"x": edited(1, "mine")})
    commit = signed(scene, "theirs")
    await scene.known()
    assert (await scene.rebase()).commit == commit


async def test_nothing_of_the_repository_runs_and_nothing_of_it_changes(scene: Scene) -> None:
    scene.branch("base", "", {"x": LINES, ".gitattributes": b"* merge=evil filter=evil diff=evil\n"})
    scene.branch("ours", "base", {"x": edited(1, "newer")})
    scene.branch("theirs", "base", {"x": edited(1, "mine")})
    scene.branch("fits", "base", {"x": edited(30, "mine")})
    await scene.known()
    marker = scene.folder / "ran"
    arm(scene.user, scene.folder / "evil", marker)
    for key in ("merge.evil.driver", "merge.default", "diff.evil.command", "diff.evil.textconv"):
        scene.user.git("config", key, str(scene.folder / "evil" / "update"))
    before, refs = everything(scene.user), scene.user.refs()
    objects = sorted((scene.user.path / ".git" / "objects").rglob("*"))
    assert (await scene.rebase()).conflicts == ("x",)
    assert (await scene.rebase(head="fits")).touched == ("x",)
    await scene.ports.merges.take(scene.user.project(), build="b1", onto=refs["refs/heads/ours"], name="fits")
    await scene.ports.merges.target(scene.user.project(branch="theirs"), build="b1")
    assert not marker.exists()
    assert (everything(scene.user), scene.user.refs()) == (before, refs)
    assert sorted((scene.user.path / ".git" / "objects").rglob("*")) == objects


async def test_only_the_named_commit_comes_and_goes_with_its_build(scene: Scene) -> None:
    base = scene.branch("main", "", {"x": LINES})
    await scene.ports.mirrors.fetch_base(scene.user.project(), build="b1")
    secret = scene.branch("secret", "main", {"secret": b"1"})
    wanted = scene.branch("wanted", "main", {"x": edited(1, "1")})
    scene.user.git("tag", "v1", wanted)
    taken = await scene.ports.merges.take(scene.user.project(), build="b1", onto=base, name="wanted")
    later = scene.branch("main", "main", {"y": b"1"})
    assert await scene.ports.merges.target(scene.user.project(), build="b1") == later
    newer = await scene.ports.merges.rebase(
        RebaseRequest(project="shop", build="b1", onto=later, base=taken.base, head=taken.commit)
    )
    pins = [f"refs/mendwork/builds/b1/candidates/{commit}" for commit in sorted((wanted, later, newer.commit))]
    assert scene.pins() == ["refs/mendwork/builds/b1/base", *pins, "refs/mendwork/builds/b1/head"]
    with pytest.raises(InvalidInput):
        await scene.ports.merges.take(scene.user.project(), build="b1", onto=base, name=f"{secret}^{{tree}}")
    await scene.ports.mirrors.forget("shop", build="b1")
    assert scene.pins() == []


async def test_other_histories_are_refused_and_leave_no_pin(scene: Scene) -> None:
    base = scene.branch("main", "", {"x": LINES})
    await scene.ports.mirrors.fetch_base(scene.user.project(), build="b1")
    scene.user.git("checkout", "--quiet", "--orphan", "foreign")
    scene.user.commit({"y": b"1"})
    with pytest.raises(InvalidInput, match="shares no history"):
        await scene.ports.merges.take(scene.user.project(), build="b1", onto=base, name="foreign")
    assert scene.pins() == ["refs/mendwork/builds/b1/base", "refs/mendwork/builds/b1/head"]


async def test_ambiguous_digits_are_said(scene: Scene) -> None:
    base = scene.branch("main", "", {"x": LINES})
    await scene.ports.mirrors.fetch_base(scene.user.project(), build="b1")
    # Found by trying: two commits that share their first seven digits are not, so a branch stands for the second.
    scene.user.git("branch", base[:7], scene.branch("other", "main", {"y": b"1"}))
    with pytest.raises(InvalidInput, match=r"not one commit of .* but 2: give all digits"):
        await scene.ports.merges.take(scene.user.project(), build="b1", onto=base, name=base[:7])
    scene.user.git("update-ref", f"refs/heads/{base}", "other")
    assert (await scene.ports.merges.take(scene.user.project(), build="b1", onto=base, name=base)).commit == base


async def test_repositories_of_sha256_objects_merge(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ("--object-format=sha256",))
    done = await scene.merge({"x": LINES}, {"x": edited(1, "1")}, {"x": edited(30, "30"), "y": b"1"})
    assert len(done.commit) == 64
    theirs = scene.branch("again", "base", {"x": edited(1, "30")})
    taken = await scene.ports.merges.take(scene.user.project(), build="b1", onto=done.commit, name=theirs[:9])
    assert taken.base == scene.user.git("rev-parse", "base")
    assert (await scene.rebase(head="again")).conflicts == ("x",)


async def test_shallow_histories_merge(scene: Scene) -> None:
    scene.branch("base", "", {"x": LINES})
    scene.branch("base", "base", {"x": edited(5, "5")})
    scene.branch("ours", "base", {"y": b"1"})
    scene.branch("theirs", "base", {"z": b"1"})
    origin = f"file://{scene.user.path}"
    scene.user.git("clone", "--quiet", "--bare", "--depth=2", "--no-single-branch", origin, "../shallow")
    scene.user.path = scene.folder / "shallow"
    await scene.known()
    assert (await scene.rebase()).touched == ("z",)


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[GitPorts, str]]:
    """One mirror with a file of forty lines; hypothesis makes many changes of it."""
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder))
        base = scene.branch("main", "", {"x": LINES})
        asyncio.run(scene.known())
        yield scene.ports, base


Edits = st.dictionaries(st.integers(0, 9), st.sampled_from(["", "new\n", "two\nlines\n"]), min_size=1, max_size=4)


@settings(max_examples=12, deadline=None)
@given(ours=Edits, theirs=Edits)
def test_disjoint_edits_commute(shared: tuple[GitPorts, str], ours: dict[int, str], theirs: dict[int, str]) -> None:
    ports, base = shared

    async def commit(edits: dict[int, str], offset: int) -> str:
        # Four lines apart, the two changes two lines apart: far enough for git to tell them from one another.
        pairs = [(f"line {4 * n + offset}\n", text) for n, text in edits.items()]
        return (await ports.workspaces.commit(request(base, operation("edit", "x", "", *pairs)))).commit

    async def both() -> tuple[str, bytes, bytes]:
        one, two = await commit(ours, 0), await commit(theirs, 2)
        there, back = [
            (
                await ports.merges.rebase(RebaseRequest(project="shop", build="b0", onto=onto, base=base, head=head))
            ).commit
            for onto, head in ((one, two), (two, one))
        ]
        return (
            await ports.sources.diff("shop", there, back),
            await ports.sources.read("shop", there, "x"),
            await ports.sources.read("shop", one, "x"),
        )

    difference, merged, _ = asyncio.run(both())
    assert difference == ""
    expected = LINES.decode().splitlines(keepends=True)
    for edits, offset in ((ours, 0), (theirs, 2)):
        for number, text in edits.items():
            expected[4 * number + offset] = text
    assert merged.decode() == "".join(expected)
