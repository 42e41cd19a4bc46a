"""The engine with nothing outside: its own records, money and calls, on a store and blobs, with a language model.

What would touch a repository or a sandbox answers at once, as in the tests of the workflows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from temporalio import activity

from activities.accounts.money import Money
from activities.accounts.turns import Turnstile
from activities.models import Models
from activities.prompts import RenderChangeInput, RenderedPrompt, RenderPlanInput
from activities.records import Records
from adapters.schemas import open_schemas
from domain.build.prompt import Prompt
from domain.ports.blobs import Blobs
from domain.ports.language_model import LanguageModel, Message
from domain.ports.store import Store
from tests.workflows.fakes import World

QUESTION = "Write it.\n" * 200
HEARTBEAT = 5.0
"""Seconds, as the configuration has it when it says nothing."""
STICKY = timedelta(seconds=5)  # the same; the SDK's own is 10


class Outside(World):
    """The tests' outside world, with the engine's own activities where they need nothing else."""

    def __init__(self, *, store: Store, blobs: Blobs, model: LanguageModel, turnstile: Turnstile | None = None) -> None:
        super().__init__()
        self.blobs = blobs
        self.prompt = ""
        self.schemas = open_schemas()
        records = Records(events=store.events, undo=store.undo)
        money = Money(ledger=store.ledger, places=store.places)
        models = Models(model=model, schemas=self.schemas, calls=store.calls, blobs=blobs, turnstile=turnstile)
        self.real: list[Callable[..., Any]] = [records.record_events, records.register_undo, records.close_undo]
        self.real += [money.count_spent, money.take_place, money.give_place, money.release_build, models.call_model]

    async def fill(self) -> None:
        """Store the one prompt that all calls name."""
        prompt = Prompt(template="any", version="1", messages=(Message(role="user", content=QUESTION),))
        self.prompt = await self.blobs.put(prompt.to_bytes())

    def activities(self) -> list[Callable[..., Any]]:
        """The real ones, and the faked ones that have no real one here."""
        real = {f"do_{method.__name__}" for method in self.real}
        return [*(getattr(self, name) for name in dir(self) if name.startswith("do_") and name not in real), *self.real]

    @activity.defn(name="render_plan_prompt")
    async def do_render_plan(self, request: RenderPlanInput) -> RenderedPrompt:
        return RenderedPrompt(prompt=self.prompt, size=1)

    @activity.defn(name="render_change_prompt")
    async def do_render_change(self, request: RenderChangeInput) -> RenderedPrompt:
        return RenderedPrompt(prompt=self.prompt, size=1)
