"""Why a set-up left nothing, in words for a person, and for a model that may have caused it."""

from __future__ import annotations

from collections.abc import Sequence

from domain.gates.plain import plain

_SAID = 1_500
_HOSTS = 10
_LIMITS = {
    "timeout": "did not end in time and was stopped",
    "memory": "used more memory than it may and was stopped",
    "processes": "started more processes than it may",
    "log": "did not end in time, printing without end, and was stopped",
}


def setup_failure(*, ended: str, exit_code: int, output: str, refused: Sequence[str]) -> str:
    """What became of a set-up command that failed; ``ended``, ``exit_code`` and the ``refused`` hosts as the sandbox
    gives them. "" when it exited with 0."""
    if ended == "exited" and exit_code == 0:
        return ""
    how = f"exited with {exit_code}" if ended == "exited" else _LIMITS.get(ended, f"hit a limit: {ended}")
    return f"the set-up command {how}{refused_hosts(refused)}{said_last(output)}"


def refused_hosts(refused: Sequence[str]) -> str:
    """Which hosts it asked for and may not reach; "" when none."""
    if not refused:
        return ""
    more = f" and {len(refused) - _HOSTS} more" if len(refused) > _HOSTS else ""
    named = ", ".join(refused[:_HOSTS]) + more
    return f"; it asked for {named}, which registries does not name (setup.registries, if that is one of yours)"


def said_last(output: str) -> str:
    """The last lines of an output, behind a sentence."""
    text = plain(output[-4 * _SAID :]).strip()
    if not text:
        return "; it printed nothing"
    return f"; it said:\n{text}" if len(text) <= _SAID else f"; it said at the end:\n…{text[-_SAID:]}"
