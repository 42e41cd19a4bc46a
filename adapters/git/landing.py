"""Landing: the only writes to the user's repository. Objects first, then one ref by compare-and-set."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from adapters.git.failures import refusal, system_refusal
from adapters.git.mirror import Mirror, check_sha
from adapters.git.origin import Origin, open_origin
from adapters.git.run import Call
from domain.build.names import check_build_name, result_branch
from domain.build.project import Project
from domain.errors import RepositoryRefused

_SECONDS = 3600.0
# An empty pack: signature, version, "no objects".
_EMPTY_PACK = b"PACK\0\0\0\2\0\0\0\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitLanding:
    """The port ``Landing``: mirrors in ``folder``, packs on their way in ``work``."""

    folder: Path
    work: Path

    async def land(self, project: Project, *, build: str, commit: str) -> str:
        """Create ``mendwork/<build>`` at ``commit`` and return the branch's name; already there is success."""
        branch = result_branch(check_build_name(build))
        mirror = Mirror(folder=self.folder, project=project.name)
        origin = await open_origin(project, mirror.git.home)
        now = await origin.result(build)
        if now is None:
            await mirror.require(commit)
            await self.send(origin, mirror, commit)
            now = await self.publish(origin, build, commit)
        if now != commit:
            raise origin.taken(build, now)
        return branch

    async def retract(self, project: Project, *, build: str, commit: str) -> bool:
        """Remove the branch if it is still at ``commit`` and checked out nowhere; return whether it is gone."""
        ref = f"refs/heads/{result_branch(check_build_name(build))}"
        check_sha(commit)
        origin = await open_origin(project, self.folder / ".home")
        state = await origin.git.run("for-each-ref", "--format=%(refname) %(objectname) %(worktreepath)", ref,
                                     doing=f"read the branches of {project.repository}")  # fmt: skip
        lines = [line.split(" ", 2) for line in state.decode("utf-8", "replace").splitlines()]
        found = next((line for line in lines if line[0] == ref), None)
        if found is None:
            return True
        if found[1] != commit or found[2]:
            return False
        result = await origin.git.outcome("update-ref", "--no-deref", "-d", ref, commit)
        now = (await origin.refs(ref)).get(ref)
        if result.code and now == commit:
            raise refusal(result.stderr, doing=f"remove {ref} from {project.repository}")
        return now is None

    async def send(self, origin: Origin, mirror: Mirror, commit: str) -> None:
        """Give the user's repository every object that ``commit`` needs; those that it has are not sent again."""
        known = await _shared(origin, mirror)
        await self._transfer(origin, mirror, [commit, *(f"^{name}" for name in known)])
        if known and not await _complete(origin, commit):
            await self._transfer(origin, mirror, [commit])
        if not await _complete(origin, commit):
            raise RepositoryRefused(
                f"{origin.project.repository} lacks part of the history of {commit[:12]}, and so does the mirror: "
                "was it a shallow clone when the build began?"
            )

    async def publish(self, origin: Origin, build: str, commit: str) -> str:
        """Create the branch if there is none; return what it points at."""
        ref = f"refs/heads/{result_branch(build)}"
        result = await origin.git.outcome("update-ref", "--no-deref", ref, commit, "")
        now = await origin.result(build)
        if now is None:
            raise refusal(result.stderr, doing=f"create {ref} in {origin.project.repository}")
        return now

    async def _transfer(self, origin: Origin, mirror: Mirror, revisions: list[str]) -> None:
        try:
            # Unlinked at once, so that a killed worker leaves nothing.
            with tempfile.TemporaryFile(dir=self.work) as pack:
                await self._transfer_by(pack, origin, mirror, revisions)
        except OSError as error:
            raise system_refusal(error, doing="write a pack") from error

    async def _transfer_by(self, pack: IO[bytes], origin: Origin, mirror: Mirror, revisions: list[str]) -> None:
        wanted = "".join(f"{name}\n" for name in revisions).encode()
        packing = Call(stdin=wanted, stdout=pack.fileno(), seconds=_SECONDS)
        await mirror.git.run("pack-objects", "--revs", "--thin", "--delta-base-offset", "--stdout", "--quiet",
                             doing="pack the result", call=packing)  # fmt: skip
        if os.pread(pack.fileno(), len(_EMPTY_PACK), 0) == _EMPTY_PACK:
            return
        os.lseek(pack.fileno(), 0, os.SEEK_SET)
        await origin.git.run("index-pack", "--stdin", "--fix-thin", doing=f"write into {origin.project.repository}",
                             call=Call(stdin=pack.fileno(), seconds=_SECONDS))  # fmt: skip


async def _complete(origin: Origin, commit: str) -> bool:
    """Whether the repository has ``commit`` and all that it needs beyond what its own refs hold."""
    words = ("rev-list", "--objects", "--quiet", commit, "--not", "--all")
    return (await origin.git.outcome(*words, call=Call(seconds=_SECONDS))).code == 0


async def _shared(origin: Origin, mirror: Mirror) -> list[str]:
    """The commits at the tips of the repository's refs that the mirror has too."""
    tips = sorted(set((await origin.refs()).values()))
    asked = "".join(f"{name}\n" for name in tips).encode()
    answers = await mirror.git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", doing="compare histories",
                                   call=Call(stdin=asked))  # fmt: skip
    return [name for name, kind in (line.split() for line in answers.decode().splitlines()) if kind == "commit"]
