"""Landing: the only writes to the user's repository. Objects first, then one ref by compare-and-set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adapters.git.failures import refusal
from adapters.git.mirror import Mirror, check_sha
from adapters.git.objects.transfer import send
from adapters.git.origin import Origin, open_origin, short
from adapters.git.run import Call
from domain.build.names import check_build_name, result_branch
from domain.build.project import Project
from domain.errors import Overtaken, RepositoryRefused

# Whom the branch's reflog names, where the repository keeps one for it.
_WHO = {"GIT_COMMITTER_NAME": "Mendwork", "GIT_COMMITTER_EMAIL": "mendwork@localhost"}


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
            await send(origin, mirror, commit, by=self.work)
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

    async def publish(self, origin: Origin, build: str, commit: str) -> str:
        """Create the branch if there is none; return what it points at."""
        ref = f"refs/heads/{result_branch(build)}"
        result = await origin.git.outcome("update-ref", "--no-deref", ref, commit, "")
        now = await origin.result(build)
        if now is None:
            raise refusal(result.stderr, doing=f"create {ref} in {origin.project.repository}")
        return now

    async def forward(self, project: Project, *, old: str, new: str) -> None:
        """Fast-forward the project's branch from ``old`` to ``new``; already at ``new`` is success."""
        mirror = Mirror(folder=self.folder, project=project.name)
        origin = await open_origin(project, mirror.git.home)
        branch = await _real(origin, await origin.require_branch())
        now = await _at(origin, branch)
        if now == check_sha(new):
            return
        await _check_free(origin, branch, new)
        await _check_descent(mirror, old, new)
        if now == old:
            await send(origin, mirror, new, by=self.work)
            now = await _move(origin, branch, old, new)
        if now != new:
            raise Overtaken(
                f"{short(branch)!r} of {project.repository} is at {(now or 'nothing')[:12]} by now, not at "
                f"{old[:12]}: somebody else moved it"
            )

    async def rewind(self, project: Project, *, old: str, new: str) -> bool:
        """Move the project's branch back from ``new`` to ``old``; False when it has grown since, or is checked out."""
        check_sha(old)
        origin = await open_origin(project, self.folder / ".home")
        named = f"refs/heads/{project.branch}"
        if named not in await origin.refs("refs/heads"):
            return True
        branch = await _real(origin, named)
        now = await _at(origin, branch)
        if now == check_sha(new) and old != new and not await origin.in_use(branch):
            now = await _move(origin, branch, new, old)
        return now in (None, old) or not await _holds(origin, now, new)


async def _real(origin: Origin, branch: str) -> str:
    """What a branch that only names another one stands for."""
    answer = await origin.git.outcome("symbolic-ref", "--quiet", branch)
    real = answer.stdout.decode("utf-8", "surrogateescape").strip() if answer.code == 0 else branch
    if not real.startswith("refs/heads/"):
        raise RepositoryRefused(f"{short(branch)!r} of {origin.project.repository} stands for {real}, no branch")
    return real


async def _at(origin: Origin, branch: str) -> str | None:
    return (await origin.refs(branch)).get(branch)


async def _move(origin: Origin, branch: str, old: str, new: str) -> str | None:
    """Compare and set; return where the branch is now."""
    result = await origin.git.outcome("update-ref", "--no-deref", "-m", "mendwork", branch, new, old,
                                      call=Call(variables=_WHO))  # fmt: skip
    now = await _at(origin, branch)
    if result.code and now == old:
        raise refusal(result.stderr, doing=f"move {short(branch)!r} of {origin.project.repository}")
    return now


async def _check_free(origin: Origin, branch: str, new: str) -> None:
    if place := await origin.in_use(branch):
        raise RepositoryRefused(
            f"{short(branch)!r} of {origin.project.repository} is {place}, whose files would no longer be those "
            f"of its HEAD: switch to another branch there, or take the result by hand with 'git merge --ff-only {new}'"
        )


async def _check_descent(mirror: Mirror, old: str, new: str) -> None:
    for commit in (old, new):
        await mirror.require(commit)
    if (await mirror.git.outcome("merge-base", "--is-ancestor", old, new)).code:
        raise RepositoryRefused(f"{new[:12]} does not descend from {old[:12]}: that would be no fast-forward")


async def _holds(origin: Origin, commit: str | None, part: str) -> bool:
    """Whether ``part`` is in the history of ``commit``; what the repository does not even have is not."""
    return (await origin.git.outcome("merge-base", "--is-ancestor", part, commit or "")).code == 0
