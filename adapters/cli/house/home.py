"""What of a process keeps house, put together: each class of worker where its things are."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from adapters.settings import Settings

if TYPE_CHECKING:
    from domain.keeping.retention import Retention
    from domain.ports.store import Store

Activities = list[Callable[..., Any]]


def beside_the_store(settings: Settings, store: Store) -> Activities:
    """What knows who needs what."""
    from activities.keeping.stored import Keeping
    from adapters.cli.serving.stored import blobs_of

    keeping = Keeping(references=store.references, blobs=blobs_of(settings), retention=_retention(settings))
    return [keeping.sweep_blobs, keeping.judge_pins]


@contextmanager
def at_home(settings: Settings, name: str) -> Iterator[Activities]:
    """Known as alive in the state folder, after what killed workers left there is ended; what keeps house where
    mirrors are ("workspace") or environments ("sandbox")."""
    with _entered(settings, name, say=logging.getLogger("mendwork").info):
        yield _of_environments(settings) if name == "sandbox" else _of_mirrors(settings)


def end_leftovers(settings: Settings, *, say: Callable[[str], object]) -> None:
    """End what killed workers left, and say so."""
    with _entered(settings, "dev", say=say):
        """Nobody else enters before it is done."""


@contextmanager
def _entered(settings: Settings, name: str, *, say: Callable[[str], object]) -> Iterator[None]:
    from adapters.git.folders import remove_tree
    from adapters.house.leftovers import Leftovers
    from adapters.house.presence import present
    from adapters.sandbox.cgroups import ControlGroups

    left = Leftovers(settings.state, groups=ControlGroups(), remove=remove_tree)
    with present(settings.state, name, entering=lambda: left.end(say=say)):
        yield


def _of_environments(settings: Settings) -> Activities:
    from activities.keeping.places import EnvironmentHouse
    from adapters.environments import open_environments

    house = EnvironmentHouse(environments=open_environments(settings.common), retention=_retention(settings))
    return [house.sweep_environments]


def _of_mirrors(settings: Settings) -> Activities:
    from activities.keeping.places import MirrorHouse
    from adapters.git.folders import remove_tree
    from adapters.git.objects.keeping import GitKeeping
    from adapters.house.folders import StateFolders

    folders = StateFolders(settings.state, remove=remove_tree)
    house = MirrorHouse(keeping=GitKeeping(folder=settings.common.resolve() / "mirrors"), folders=folders)
    return [house.list_pins, house.drop_pins, house.clear_folders]


def _retention(settings: Settings) -> dict[str, Retention]:
    return {name: project.retention for name, project in settings.allowlist().items()}
