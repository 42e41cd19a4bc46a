"""The workspace worker: git, prompts and plans. No key; no model-written code runs here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from adapters.cli.serving.part import Activities, Part, engine_of
from adapters.settings import Settings

if TYPE_CHECKING:
    from activities.intake import Engine
    from adapters.git.adapter import GitPorts
    from domain.ports.blobs import Blobs


@asynccontextmanager
async def workspace_part(settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Part]:
    """Known as alive in the state folder, where its mirrors are."""
    from activities.repository.snapshots import Snapshots
    from adapters.cli.house.home import at_home
    from adapters.cli.serving.seen import git_check
    from adapters.cli.serving.stored import blobs_of
    from adapters.git.adapter import open_git

    engine, blobs, git = engine_of(settings), blobs_of(settings), open_git(settings.state, common=settings.common)
    snapshots = Snapshots(engine=engine, pins=git.mirrors, blobs=blobs, models=tuple(settings.models))
    activities: Activities = [snapshots.pin_snapshot, snapshots.restore_snapshot]
    activities += _of_prompts(settings, engine, git=git, blobs=blobs)
    activities += _of_repositories(engine, git=git, blobs=blobs)
    with at_home(settings, "workspace") as house:
        yield Part(suffix="-workspace", activities=[*activities, *house], checks=git_check(environment))


def _of_prompts(settings: Settings, engine: Engine, *, git: GitPorts, blobs: Blobs) -> Activities:
    """What models are asked, what is read out of their plans and reviews, and what people are shown."""
    from activities.packets import Packets
    from activities.planning import Planning
    from activities.prompts import Prompts
    from activities.reviewing import Reviewing
    from adapters.code import open_code
    from adapters.prompts.jinja import JinjaPrompts
    from adapters.schemas import open_schemas

    code = open_code(settings.state)
    prompts = Prompts(engine=engine, sources=git.sources, templates=JinjaPrompts(), blobs=blobs, code=code)
    planning = Planning(blobs=blobs, schemas=open_schemas())
    activities: Activities = [prompts.render_plan_prompt, prompts.render_change_prompt, prompts.render_again_prompt]
    activities += [prompts.render_review_prompt, Reviewing(blobs=blobs).check_review]
    activities += [planning.check_plan, planning.adopt_plan, Packets(sources=git.sources, blobs=blobs).pack]
    return activities


def _of_repositories(engine: Engine, *, git: GitPorts, blobs: Blobs) -> Activities:
    """From the pinned base to the landed result, and what a delivery takes from there."""
    from activities.delivery.admission import Admission
    from activities.intake import Intake
    from activities.repository.changes import Changes
    from activities.repository.landing import Landings
    from activities.repository.merging import Merging

    mirrors, sources = git.mirrors, git.sources
    intake = Intake(engine=engine, mirrors=mirrors, blobs=blobs)
    changes = Changes(engine=engine, workspaces=git.workspaces, mirrors=mirrors, sources=sources, blobs=blobs)
    landings = Landings(engine=engine, landing=git.landing, mirrors=mirrors, sources=sources, blobs=blobs)
    merging = Merging(engine=engine, merges=git.merges, sources=sources, blobs=blobs)
    admission = Admission(engine=engine, mirrors=mirrors, sources=sources, merges=git.merges)
    activities: Activities = [intake.admit_build, intake.fetch_base]
    activities += [changes.apply_change, changes.advance_head]
    activities += [merging.rebase_commits, merging.take_commit, merging.fetch_target]
    activities += [landings.land_result, landings.retract_result, landings.forget_build]
    activities += [landings.forward_target, landings.rewind_target]
    activities += [admission.admit_delivery, admission.pin_commit, admission.assess_change]
    return activities
