"""What git says on stderr, as one classified error with one sentence."""

from __future__ import annotations

import errno
import re

from domain.errors import MendworkError, Overtaken, RepositoryRefused, ResourceShort

_SHORT = re.compile(
    r"No space left on device|Disk quota exceeded|Cannot allocate memory|[Oo]ut of memory|"
    r"Resource temporarily unavailable|Too many open files"
)
_LOCKED = re.compile(r"Unable to create '.*\.lock': File exists")
_PULLED_AWAY = re.compile(r"unable to (?:create temporary|write) file[^\n]*: No such file or directory")
"""Pruning removed the empty folder that git had just made for a new object."""
_SHORT_NUMBERS = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.EFBIG)
)
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.")
_LONGEST = 300


def plain(text: str) -> str:
    """``text`` without terminal escape codes and control characters; line ends become blanks."""
    without = _ESCAPES.sub("", text)
    return "".join(c if c.isprintable() else " " for c in without).strip()


def first_line(stderr: bytes) -> str:
    """The line that says what is wrong: git's first "fatal:" or "error:", else its first one."""
    lines = [plain(line) for line in stderr.decode("utf-8", "replace").splitlines()]
    named = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    chosen = next(iter(named or [line for line in lines if line]), "git gave no reason")
    line = re.sub(r"^(?:fatal|error): ", "", chosen)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def pulled_away(stderr: bytes) -> bool:
    """Whether git lost a race against the pruning of the same repository, and succeeds when it is asked again."""
    return _PULLED_AWAY.search(stderr.decode("utf-8", "replace")) is not None


def refusal(stderr: bytes, *, doing: str) -> MendworkError:
    """The error for a git that failed. ``doing`` completes "could not"."""
    whole, line = stderr.decode("utf-8", "replace"), first_line(stderr)
    if _SHORT.search(whole):
        return ResourceShort(f"could not {doing}: {line}")
    if _LOCKED.search(whole):
        return Overtaken(f"could not {doing}, another git process holds a lock: {line}")
    if pulled_away(stderr):
        return Overtaken(f"could not {doing} while the repository was tidied up: {line}")
    return RepositoryRefused(f"could not {doing}: {line}")


def system_refusal(error: OSError, *, doing: str) -> MendworkError:
    """The error for a file or process of ours that the system refused."""
    sentence = f"could not {doing}: {plain(error.strerror or str(error))}"
    return ResourceShort(sentence) if error.errno in _SHORT_NUMBERS else RepositoryRefused(sentence)
