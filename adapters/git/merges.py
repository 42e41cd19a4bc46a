"""Merges: commits written again on top of newer ones, and commits that come from the user's repository."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from adapters.git.failures import refusal
from adapters.git.mirror import Mirror, build_ref
from adapters.git.objects.merge import Clash, merge_trees
from adapters.git.objects.replay import Commit, list_chain, read_commits, write_commit
from adapters.git.objects.report import conflict_report
from adapters.git.objects.transfer import fetch
from adapters.git.origin import Origin, open_origin
from adapters.git.run import Call
from domain.build.project import Project
from domain.errors import InvalidInput
from domain.ports.workspace import Rebased, RebaseRequest, Taken

_DIGITS = 7
_HEX = re.compile(r"[0-9a-fA-F]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitMerges:
    """The port ``Merges`` on the mirrors in ``folder``."""

    folder: Path

    async def rebase(self, request: RebaseRequest) -> Rebased:
        """Commit by commit; one whose content is there already is left out, and with nothing left it is ``onto``.

        A range with a merge in it becomes one commit: its parts alone would lose what the merge resolved.
        """
        mirror = Mirror(folder=self.folder, project=request.project)
        found = await read_commits(mirror, (request.onto, request.base, request.head))
        chain = await list_chain(mirror, request.base, request.head)
        commits = found | await read_commits(mirror, chain[:-1])
        current, before = found[request.onto], found[request.base]
        if current is before:
            current, chain = found[request.head] if chain else current, []
        for name in chain:
            commit = commits[name]
            done = await self._replay(mirror, commit, onto=current, before=before)
            if isinstance(done, Rebased):
                return done
            current, before = done, commit
        await mirror.pin(request.build, current.name)
        touched = await _touched(mirror, request.onto, current.name)
        return Rebased(commit=current.name, conflicts=(), report="", touched=touched)

    async def _replay(self, mirror: Mirror, commit: Commit, *, onto: Commit, before: Commit) -> Commit | Rebased:
        """What ``commit`` made of ``before``, done to ``onto``; the conflicts when that cannot be."""
        if commit.parents == (onto.name,):
            return commit
        merge = await merge_trees(mirror.git, newer=onto, before=before, mine=commit)
        if merge.clashes:
            report = await conflict_report(mirror.git, merge, f"{commit.name[:12]} {commit.subject}")
            return Rebased(commit="", conflicts=_paths(merge.clashes), report=report, touched=())
        if merge.tree == onto.tree:
            return onto
        return await write_commit(mirror.git, commit, tree=merge.tree, parent=onto.name)

    async def take(self, project: Project, *, build: str, onto: str, name: str) -> Taken:
        """Fetch the commit that a person names, alone and pinned; ``base`` is its newest common ancestor with ``onto``.

        Of a branch and a commit of the same name neither is taken, but that all digits of a commit mean the commit.
        """
        mirror = Mirror(folder=self.folder, project=project.name)
        await mirror.require(onto)
        origin = await open_origin(project, mirror.git.home)
        wanted = await _named_commit(origin, name)
        arrived = build_ref(build, f"fetched-{wanted[-12:]}")  # the same for a next try: a killed one leaves nothing
        try:
            commit = await fetch(origin, mirror, wanted, to=arrived)
            answer = await mirror.git.outcome("merge-base", onto, commit)
            if answer.code == 1:
                raise InvalidInput(
                    f"commit {commit[:12]} shares no history with the build: put the work on a branch that starts "
                    f"from {onto[:12]} or from the commit that the build started from"
                )
            if answer.code:
                raise refusal(answer.stderr, doing=f"compare {commit[:12]} with the build")
            await mirror.pin(build, commit)
        finally:
            await mirror.update_ref(arrived, "", "")
        return Taken(commit=commit, base=answer.stdout.decode().strip())

    async def target(self, project: Project, *, build: str) -> str:
        """Fetch the project's branch as it is now, pin and return its commit."""
        mirror = Mirror(folder=self.folder, project=project.name)
        origin = await open_origin(project, mirror.git.home)
        branch = await origin.require_branch()
        arrived = build_ref(build, "fetched-target")
        try:
            commit = await fetch(origin, mirror, branch, to=arrived)
            await mirror.pin(build, commit)
        finally:
            await mirror.update_ref(arrived, "", "")
        return commit


def _paths(clashes: tuple[Clash, ...]) -> tuple[str, ...]:
    return tuple(clash.path.decode("utf-8", "backslashreplace") for clash in clashes)


async def _touched(mirror: Mirror, old: str, new: str) -> tuple[str, ...]:
    """Every path that differs, a renamed file by both of its names."""
    listed = await mirror.git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new,
                                  doing=f"compare {old[:12]} and {new[:12]}")  # fmt: skip
    return tuple(sorted(path.decode("utf-8", "backslashreplace") for path in listed.split(b"\0") if path))


async def _named_commit(origin: Origin, name: str) -> str:
    """The full SHA of the branch or commit ``name``. Raises InvalidInput."""
    branch = (await origin.refs("refs/heads")).get(f"refs/heads/{name}")
    digits = name.lower() if _HEX.fullmatch(name) else ""
    commits = await _with_prefix(origin, digits) if len(digits) >= _DIGITS else []
    if digits in commits:
        return digits
    found = {*commits, *([branch] if branch else [])}
    if len(found) == 1:
        return found.pop()
    where = origin.project.repository
    if found:
        raise InvalidInput(f"{name!r} is not one commit of {where} but {len(found)}: give all digits of its SHA")
    few = f" (a commit is named by at least {_DIGITS} digits)" if digits and len(digits) < _DIGITS else ""
    known = await origin.known_branches() or "none"
    raise InvalidInput(f"{where} has no branch or commit {name[:80]!r}{few}; its branches are: {known}")


async def _with_prefix(origin: Origin, digits: str) -> list[str]:
    doing = f"look for the commit {digits}"
    listed = await origin.git.run("rev-parse", f"--disambiguate={digits}", doing=doing)
    kinds = await origin.git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", doing=doing,
                                 call=Call(stdin=listed))  # fmt: skip
    return [name for name, kind in (line.split(" ", 1) for line in kinds.decode().splitlines()) if kind == "commit"]
