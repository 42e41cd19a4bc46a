"""The bucket of blobs, only where there is one: looked into without writing to it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from adapters.cli.doctor.finding import Finding, Patient
from domain.errors import MendworkError

PATIENCE = 6.0
_PURPOSE = "prompts, answers, plans and logs"
_CURE = "mendwork config get blobs --show-origin"


async def blobs(patient: Patient) -> Sequence[Finding]:
    """Whether it can be reached, is there, and lets us read."""
    settings = patient.settings
    if settings is None or not settings.blobs.url:
        return []
    from adapters.cli.serving.stored import blobs_check

    try:
        async with asyncio.timeout(PATIENCE):
            await blobs_check(settings)["blobs"]()
    except TimeoutError:
        told = f"{settings.blobs.url}: no answer within {PATIENCE:g} s"
    except MendworkError as error:
        told = str(error)
    else:
        return [Finding(name="blobs", state="ok", purpose=_PURPOSE, detail=f"{settings.blobs.url} can be read")]
    return [Finding(name="blobs", state="broken", purpose=_PURPOSE, detail=told, cure=_CURE)]
