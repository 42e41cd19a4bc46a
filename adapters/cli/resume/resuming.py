"""``mendwork resume``: a new build that goes on where a snapshot of another was taken."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.cli.build import Asked, launch, project_of, words_in
from adapters.cli.session import login
from adapters.settings import Settings
from domain.build.requests import decode_build_request
from domain.build.strategy import strategy
from domain.errors import InvalidInput
from domain.replay.snapshots import ROLES, with_models

if TYPE_CHECKING:
    from activities.repository.snapshots import FoundSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeWanted:
    """What a person asked for. ``models`` as in BuildRequest; those of ``role_models`` have to name a role. Lists in
    one text are words with commas between them."""

    token: str
    models: tuple[str, ...] = ()
    role_models: tuple[str, ...] = ()
    strategy: str = ""
    fork: bool = False
    title: str = ""
    detach: bool = False
    allow_missing: str = ""
    approve: str = ""
    unattended: bool = False
    deliver: bool = True
    user: str = ""
    json: bool = False


async def resume(settings: Settings, wanted: ResumeWanted) -> int:
    """Refuse at once what the build would refuse; start it under the project's next number and follow it.

    Raises InvalidInput, UnknownName, AlreadyRunning, Transient.
    """
    for text in wanted.role_models:
        if "=" not in text:
            raise InvalidInput(f"--role-model {text[:100]!r}: it reads ROLE=MODEL, with one of {', '.join(ROLES)}")
    with_models({}, wanted.models, known=tuple(settings.models))
    strategy(wanted.strategy)
    found, title = await _find(settings, wanted)
    project_of(settings, found.project)
    asked = Asked(
        spec="",
        project=found.project,
        title=wanted.title or title,
        detach=wanted.detach,
        json=wanted.json,
        allow_missing=wanted.allow_missing,
        approve=wanted.approve,
        unattended=wanted.unattended,
        user=wanted.user or login(),
        deliver=wanted.deliver,
    )
    request = decode_build_request(
        {
            "resume": found.token,
            "fork": wanted.fork,
            "models": wanted.models,
            "strategy": wanted.strategy,
            "project": asked.project,
            "title": asked.title,
            "allow_missing": words_in(asked.allow_missing),
            "approved": words_in(asked.approve),
            "unattended": asked.unattended,
            "user": asked.user,
            "deliver": asked.deliver,
        }
    )
    return await launch(settings, request, asked)


async def _find(settings: Settings, wanted: ResumeWanted) -> tuple[FoundSnapshot, str]:
    """What the new build would find, so that no number is used up for a token that stands for nothing; and the title of
    the build that it is of."""
    from activities.repository.snapshots import FindSnapshotInput, SnapshotBook
    from adapters.store import open_store
    from adapters.temporal.connect import connect
    from adapters.temporal.sagas import TemporalSagas

    client = await connect(settings, os.environ)
    async with await open_store(settings.store_url) as store:
        book = SnapshotBook(store=store, sagas=TemporalSagas(client))
        found = await book.find_snapshot(FindSnapshotInput(token=wanted.token, fork=wanted.fork))
        row = await store.builds.get(found.build)
    return found, row.title if row else ""
