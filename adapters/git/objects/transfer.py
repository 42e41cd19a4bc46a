"""Objects on their way: from the user's repository into the mirror, and back."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO

from adapters.git.failures import system_refusal
from adapters.git.mirror import Mirror
from adapters.git.origin import Origin
from adapters.git.run import Call
from domain.errors import Overtaken, RepositoryRefused

_SECONDS = 3600.0
# An empty pack: signature, version, "no objects".
_EMPTY_PACK = b"PACK\0\0\0\2\0\0\0\0"


async def fetch(origin: Origin, mirror: Mirror, source: str, *, to: str) -> str:
    """Bring ``source``, a full ref name or SHA, and nothing else to the ref ``to``, which no other fetch knows; return
    its commit."""
    async with mirror.lock("fetch") as held:
        await mirror.ensure(origin.object_format)
        mirror.drop_stale("shallow")
        await mirror.git.run(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--update-shallow",
            "--no-recurse-submodules", f"--upload-pack={origin.upload_pack()}", str(origin.git.directory),
            f"+{source}:{to}",
            doing=f"fetch {source.removeprefix('refs/heads/')!r} from {origin.project.repository}",
            call=Call(seconds=_SECONDS, keep=(held,)),
        )  # fmt: skip
    commit = await mirror.ref(to)
    if commit is None:
        raise Overtaken(f"what {origin.project.name} has at {source} was forgotten while it was fetched")
    return commit


async def send(origin: Origin, mirror: Mirror, commit: str, *, by: Path) -> None:
    """Give the user's repository every object that ``commit`` needs; those that it has are not sent again.

    The pack lies in the folder ``by`` on its way. Raises RepositoryRefused, ResourceShort.
    """
    known = await _shared(origin, mirror)
    await _transfer(origin, mirror, [commit, *(f"^{name}" for name in known)], by)
    if known and not await _complete(origin, commit):
        await _transfer(origin, mirror, [commit], by)
    if not await _complete(origin, commit):
        raise RepositoryRefused(
            f"{origin.project.repository} lacks part of the history of {commit[:12]}, and so does the mirror: "
            "was it a shallow clone when the build began?"
        )


async def _transfer(origin: Origin, mirror: Mirror, revisions: list[str], by: Path) -> None:
    try:
        # Unlinked at once, so that a killed worker leaves nothing.
        with tempfile.TemporaryFile(dir=by) as pack:
            await _transfer_in(pack, origin, mirror, revisions)
    except OSError as error:
        raise system_refusal(error, doing="write a pack") from error


async def _transfer_in(pack: IO[bytes], origin: Origin, mirror: Mirror, revisions: list[str]) -> None:
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
