"""A dry run: the plan, and what it would take; nothing of it is done."""

from __future__ import annotations

from dataclasses import asdict

from temporalio import workflow

from workflows.context import Build
from workflows.phases.planning import read_briefs
from workflows.policies import STORE

with workflow.unsafe.imports_passed_through():
    # The sandbox decodes a result's types only where their modules were imported by name inside of it.
    import domain.money.amounts
    import domain.money.forecast  # noqa: F401
    from activities.accounts.forecasting import Forecast, Forecasting, ForecastInput


async def forecast(build: Build) -> None:
    """Write down what the planned build would take."""
    await build.enter("forecast")
    await read_briefs(build)
    admitted = build.admitted
    request = ForecastInput(
        project=admitted.project,
        build=build.name,
        tasks=build.briefs,
        attempts=admitted.limits.attempts,
        review=admitted.consent.review,
        approve=admitted.consent.approve,
        delivers=admitted.delivers and build.request.deliver,
        coding=admitted.coding,
        output_tokens=admitted.limits.output_tokens,
        prompt_tokens=0,
        validation=admitted.validation,
    )
    told: Forecast = await build.effects.run(STORE, Forecasting.forecast_build, request)
    build.recorder.note("build.forecast", forecast=asdict(told))
    await build.recorder.flush(build.effects)
