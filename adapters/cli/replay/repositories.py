"""The scratch world's repositories: only the commits that the phase begins with, and what they descend from."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.git.adapter import open_git
from adapters.git.mirror import Mirror, check_sha
from adapters.git.run import Call, Git

_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """Where commits come from, ``source`` (an original mirror, which is only read), and the state folder that gets
    them, ``state``."""

    source: Mirror
    state: Path

    async def mirror(self, commits: Sequence[str]) -> None:
        """A mirror of the same project that holds ``commits``, kept by a ref each. Raises RepositoryRefused when the
        source has not kept one."""
        open_git(self.state)
        made = Mirror(folder=self.state / "mirrors", project=self.source.project)
        await made.ensure(await self._format())
        await self._carry(made.git, commits)
        for commit in commits:
            await made.git.run("update-ref", f"refs/mendwork/replay/{commit}", commit, doing="keep a commit")

    async def repository(self, folder: Path, *, branch: str, commit: str) -> None:
        """A bare repository in the place of the user's, with ``branch`` at ``commit``."""
        open_git(self.state)
        await asyncio.to_thread(folder.mkdir, mode=0o700)
        git = Git(directory=folder, home=self.state / "mirrors" / ".home", umask=0o077)
        await git.run("init", "--quiet", "--bare", "--template=", f"--object-format={await self._format()}",
                      doing="make a repository")  # fmt: skip
        await self._carry(git, (commit,))
        await git.run("update-ref", f"refs/heads/{branch}", commit, doing="make the branch")
        await git.run("symbolic-ref", "HEAD", f"refs/heads/{branch}", doing="name the branch")

    async def _format(self) -> str:
        said = await self.source.git.run("rev-parse", "--show-object-format", doing="read the mirror")
        return said.decode().strip()

    async def _carry(self, target: Git, commits: Sequence[str]) -> None:
        for commit in commits:
            await self.source.require(check_sha(commit))
        shallow = self.source.path / "shallow"
        if shallow.is_file():
            shutil.copyfile(shallow, target.directory / "shallow")
        with tempfile.TemporaryFile(dir=self.state) as pack:
            wanted = "".join(f"{commit}\n" for commit in commits).encode()
            call = Call(stdin=wanted, stdout=pack.fileno(), seconds=_SECONDS)
            await self.source.git.run("pack-objects", "--revs", "--delta-base-offset", "--stdout", "--quiet",
                                      doing="copy commits", call=call)  # fmt: skip
            pack.seek(0)
            await target.run("index-pack", "--stdin", doing="copy commits",
                             call=Call(stdin=pack.fileno(), seconds=_SECONDS))  # fmt: skip
