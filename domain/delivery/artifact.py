"""What an artefact may hold, in which order, and why a build command left none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from domain.errors import ArtifactFailed, TooLarge
from domain.gates.plain import plain

FILE, FOLDER, LINK = "file", "folder", "link"
MOST_MEMBERS = 100_000
_LONGEST_PATH = 1_000
_BLOCK = 512
_SAID = 300
_LIMITS = {
    "timeout": "did not end in time and was stopped",
    "memory": "used more memory than it may and was stopped",
    "processes": "started more processes than it may",
    "log": "did not end in time, printing without end, and was stopped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One file, folder or link of an artefact, by its path inside. ``size`` in bytes, of files; ``target`` of links.

    Owners, times and every permission but ``executable`` are no part of an artefact.
    """

    path: str
    kind: str
    size: int = 0
    executable: bool = False
    target: str = ""


def arranged(members: Iterable[Member], *, most_bytes: int) -> tuple[Member, ...]:
    """The members of an artefact in their one order, each folder before what is in it.

    Raises ArtifactFailed for what may not be in one, or when there is no file at all; TooLarge when their tar is
    larger than ``most_bytes`` or they are too many.
    """
    known: dict[str, Member] = {}
    room = most_bytes - 2 * _BLOCK
    for member in members:
        _check(member, known)
        room -= _BLOCK + -(-member.size // _BLOCK) * _BLOCK
        if room < 0:
            raise TooLarge(f"the artefact is larger than the {most_bytes} bytes that a release may be")
        known[member.path] = member
        if len(known) > MOST_MEMBERS:
            raise TooLarge(f"the artefact has more than {MOST_MEMBERS} files, folders and links")
    for path in known:
        above = path.rpartition("/")[0]
        if above and (above not in known or known[above].kind != FOLDER):
            raise ArtifactFailed(f"the artefact has {_shown(path)} in something that is no folder of it")
    if all(member.kind != FILE for member in known.values()):
        raise ArtifactFailed("there is no file to release")
    return tuple(known[path] for path in sorted(known))


def output_folder(output: str) -> str:
    """Where a build leaves its artefact, as the sandbox takes it: "." for all of the checkout."""
    parts = [part for part in output.split("/") if part not in ("", ".")]
    return "/".join(parts) or "."


def build_failure(*, ended: str, exit_code: int, output: str) -> str:
    """One sentence about a build command that failed, with the end of what it printed; "" when it exited with 0.

    ``ended`` and ``exit_code`` as the sandbox gives them.
    """
    if ended == "exited" and exit_code == 0:
        return ""
    how = f"exited with {exit_code}" if ended == "exited" else _LIMITS.get(ended, f"hit a limit: {ended}")
    return f"the build command {how}{said_last(output)}"


def said_last(output: str) -> str:
    """The end of an output, to go behind a sentence: its last lines as one, "" when it printed nothing."""
    words = " ".join(plain(output[-4 * _SAID :]).split())
    if not words:
        return ", and printed nothing"
    return f", saying: {words}" if len(words) <= _SAID else f", saying at the end: …{words[-_SAID:]}"


def _check(member: Member, known: dict[str, Member]) -> None:
    parts = member.path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in member.path:
        raise ArtifactFailed(f"the artefact has {_shown(member.path)}, which is no path inside it")
    if len(member.path) > _LONGEST_PATH:
        raise ArtifactFailed(
            f"the artefact has a path of {len(member.path)} characters; at most {_LONGEST_PATH} may be"
        )
    if member.path in known:
        raise ArtifactFailed(f"the artefact has {_shown(member.path)} twice")
    if member.kind not in (FILE, FOLDER, LINK) or member.size < 0:
        raise ArtifactFailed(
            f"the artefact has {_shown(member.path)}, which is {member.kind}: only files, folders and links may be"
        )
    if member.kind == LINK and not _stays_inside(member.target, depth=len(parts) - 1):
        raise ArtifactFailed(
            f"the artefact has the link {_shown(member.path)} to {_shown(member.target)}: "
            "a link has to be relative, with '..' only at its beginning, and to stay inside"
        )


def _stays_inside(target: str, *, depth: int) -> bool:
    """Without ``..`` behind a name, where it could lead up from wherever a link on the way leads, each link's end is
    inside when every link is judged alone: its folder is a real one, ``depth`` below the top."""
    if not target or target.startswith("/") or "\0" in target or len(target) > _LONGEST_PATH:
        return False
    parts = [part for part in target.split("/") if part not in ("", ".")]
    ups = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    return ups <= depth and ".." not in parts[ups:]


def _shown(path: str) -> str:
    return repr(plain(path[:120]))
