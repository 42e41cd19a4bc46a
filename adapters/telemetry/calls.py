"""A language model whose calls are seen: only those that reach for a provider, not answers that were on record."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.telemetry.subject import Calling, Outcome, current
from domain.money.usage import Quote
from domain.ports.language_model import LanguageModel, ModelAnswer, ModelRequest, bill_of


class WatchedModel:
    """``model``, and the watchers of the activity that calls it are told. ``names`` are litellm's, by ours."""

    def __init__(self, model: LanguageModel, *, names: Mapping[str, str]) -> None:
        self._model = model
        self._names = dict(names)

    async def quote(self, model: str) -> Quote | None:
        """As ``model`` does."""
        return await self._model.quote(model)

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """As ``model`` does."""
        subject = current.get()
        name, role = self._names.get(request.model, ""), subject.role or request.key.step
        call = Calling(model=request.model, name=name, role=role, key=str(request.key))
        ended = [begin(call) for begin in subject.watchers]
        outcome = Outcome(fault="Cancelled")
        try:
            answer = await self._model.complete(request)
            outcome = Outcome(usage=answer.usage)
        except Exception as error:
            bill = bill_of(error)
            outcome = Outcome(fault=type(error).__name__, usage=bill.usage if bill else None)
            raise
        finally:
            for end in ended:
                end(outcome)
        return answer
