"""Workers as versions of a worker deployment, where old ones can stay beside new ones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from adapters.settings import Settings

if TYPE_CHECKING:
    from temporalio.worker import WorkerDeploymentConfig


def build_id(settings: Settings) -> str:
    """What this version of the engine is called: as configured, or its release and the commit of its checkout."""
    from adapters.cli.doctor.versions import CHECKOUT, commit, release

    if settings.temporal.build_id:
        return settings.temporal.build_id
    known = commit(CHECKOUT)
    return f"{release()}-{known[:12]}" if known else release()


def version_here(settings: Settings) -> str:
    """This version as "deployment:build-id"; "" where no deployment is configured."""
    name = settings.temporal.deployment
    return f"{name}:{build_id(settings)}" if name else ""


def is_deployed(settings: Settings, environment: Mapping[str, str]) -> bool:
    """Whether this worker is one of a deployment: where one is configured, and old workers can stay.

    Those of `mendwork dev` cannot: they are replaced in place, and end with it.
    """
    from adapters.temporal.connect import external_target
    from adapters.temporal.state import read_state

    if not settings.temporal.deployment or external_target(settings, environment) is None:
        return False
    embedded = read_state(settings.state)
    return embedded is None or embedded.pid != os.getppid()


def deployment(settings: Settings, environment: Mapping[str, str]) -> WorkerDeploymentConfig | None:
    """How a worker of this process joins its deployment; None where it belongs to none. What is not pinned by its type
    moves on with each version."""
    from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
    from temporalio.worker import WorkerDeploymentConfig

    if not is_deployed(settings, environment):
        return None
    name = settings.temporal.deployment
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(deployment_name=name, build_id=build_id(settings)),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
    )


def served(settings: Settings, environment: Mapping[str, str]) -> Sequence[type]:
    """The workflows of the saga worker; in a deployment, those that stay with their version say so."""
    from workflows.catalogue import IN_A_DEPLOYMENT, WORKFLOWS

    return IN_A_DEPLOYMENT if is_deployed(settings, environment) else WORKFLOWS
