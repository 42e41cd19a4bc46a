"""The original's set-up dependencies, shown in the scratch world: their trees are links, which no run may write to."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from adapters.environments.files import FileEnvironments
from adapters.environments.locks import held
from domain.errors import InvalidInput

FOLDER, TREE, RECORD = "environments", "tree", "record.json"


@contextlib.contextmanager
def shown(theirs: Path, mine: Path, *, project: str) -> Iterator[None]:
    """The environments of ``project`` below the state folder ``theirs``, as those of ``mine``. None of them can be
    removed as long as the context is open; their last use stays what it was."""
    with contextlib.ExitStack() as held_here:
        for place in sorted((theirs / FOLDER).glob("[0-9a-f]*")):
            if held_here.enter_context(held(place, shared=True)) and _is_of(place, project):
                copy = mine / FOLDER / place.name
                copy.mkdir(parents=True)
                shutil.copyfile(place / RECORD, copy / RECORD)
                (copy / TREE).symlink_to((place / TREE).resolve())
        yield


def _is_of(place: Path, project: str) -> bool:
    """What cannot be read is not shown: it is set up again then, or fails with a sentence."""
    try:
        return bool(json.loads((place / RECORD).read_text(encoding="utf-8"))["project"] == project)
    except (OSError, ValueError, KeyError, TypeError):
        return False


class ShownEnvironments(FileEnvironments):
    """Those that are there and no others: nothing is fetched to make one."""

    @asynccontextmanager
    async def making(self, key: str, *, project: str) -> AsyncIterator[Path]:
        """Raises InvalidInput."""
        if key:
            raise InvalidInput(
                f"the environment {key[:12]} of project {project} is not kept any more, and a replay fetches nothing"
            )
        yield Path()
