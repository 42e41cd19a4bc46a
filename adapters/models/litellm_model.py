"""Any provider, and any OpenAI-compatible server, through litellm."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from adapters.models.endpoint import Endpoint
from adapters.models.engine import engine
from adapters.models.prices import listed_quote, taken_pins
from adapters.models.refusals import as_error, bill_for
from domain.errors import ProviderRefused, ProviderUnavailable, UnknownName
from domain.money.usage import FREE, NOTHING, Bill, Quote, Usage
from domain.ports.language_model import AnswerSchemas, ModelAnswer, ModelRequest, with_bill

MAX_ANSWER_BYTES = 4 * 1024 * 1024
KEY_HEADER = "X-Mendwork-Key"
IDEMPOTENCY_HEADER = "Idempotency-Key"

_IN_WORDS = "Answer with one JSON object and nothing else: no prose, no fences. It must fit this JSON schema:\n"


class LitellmModel:
    """Implements LanguageModel. ``endpoints`` by the names that requests use.

    Answers are not streamed, so a provider that goes silent and one that is slow end at the same total timeout.
    """

    def __init__(self, endpoints: Mapping[str, Endpoint], schemas: AnswerSchemas) -> None:
        self._endpoints = dict(endpoints)
        self._schemas = schemas
        self._quotes: dict[str, Quote | None] = {}
        self._pins: dict[str, frozenset[str]] = {}

    async def quote(self, model: str) -> Quote | None:
        """See LanguageModel. A configured price wins; litellm's table is asked once."""
        endpoint = self._endpoint(model)
        if endpoint.price is not None:
            return Quote(price=endpoint.price, source="mendwork.toml")
        if model not in self._quotes:
            litellm = (await engine()).litellm
            self._quotes[model] = await asyncio.to_thread(listed_quote, litellm, endpoint.model)
        return self._quotes[model]

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """See LanguageModel."""
        endpoint = self._endpoint(request.model)
        asked = _asked(request, endpoint, self._schemas.schema(request.schema_name))
        litellm_engine = await engine()
        pinned = self._pinned(litellm_engine.litellm, request, endpoint)
        try:
            response = await litellm_engine.run(
                _call(litellm_engine.litellm, asked | pinned, seconds=request.timeout_seconds)
            )
        except TimeoutError:
            raise ProviderUnavailable(
                f"model {endpoint.name}: no answer within {request.timeout_seconds:g} s"
            ) from None
        except Exception as failure:
            # Without its cause: that one holds the request, with prompts and keys.
            error, bill = as_error(failure, endpoint), bill_for(failure, endpoint)
            raise (error if bill is None else with_bill(error, bill)) from None
        usage = _usage(litellm_engine.litellm, response, endpoint, await self.quote(request.model))
        return replace(_answer(response, endpoint, usage), pinned=pinned)

    def _endpoint(self, model: str) -> Endpoint:
        if model not in self._endpoints:
            raise with_bill(UnknownName.among("model", model, self._endpoints), FREE)
        return self._endpoints[model]

    def _pinned(self, litellm: Any, request: ModelRequest, endpoint: Endpoint) -> dict[str, Any]:
        """What makes the answer repeatable, as far as this model takes it; litellm is asked for its names once."""
        if not endpoint.pin:
            return {}
        wanted = {"temperature": 0, "seed": request.key.seed}
        if endpoint.name not in self._pins:
            try:
                taken = taken_pins(litellm, endpoint.model, base_url=endpoint.base_url, wanted=wanted)
            except Exception as failure:
                raise with_bill(as_error(failure, endpoint), FREE) from None
            self._pins[endpoint.name] = frozenset(taken)
        return {name: value for name, value in wanted.items() if name in self._pins[endpoint.name]}


async def _call(litellm: Any, asked: Mapping[str, Any], *, seconds: float) -> Any:
    async with asyncio.timeout(seconds):
        return await litellm.acompletion(**asked, timeout=seconds, num_retries=0, max_retries=0)


def _asked(request: ModelRequest, endpoint: Endpoint, schema: Mapping[str, Any]) -> dict[str, Any]:
    key = quote(str(request.key), safe="/")
    asked: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "max_tokens": request.max_output_tokens,
        "extra_headers": {KEY_HEADER: key, IDEMPOTENCY_HEADER: key},
    }
    if endpoint.base_url:
        asked["api_base"] = endpoint.base_url
    if endpoint.api_key or endpoint.base_url:
        asked["api_key"] = endpoint.api_key.strip() or "none"
    if endpoint.structured:
        described = {"name": request.schema_name, "strict": True, "schema": dict(schema)}
        asked["response_format"] = {"type": "json_schema", "json_schema": described}
    else:
        asked["messages"].insert(0, {"role": "system", "content": _IN_WORDS + json.dumps(schema, ensure_ascii=False)})
    return asked


def _answer(response: Any, endpoint: Endpoint, usage: Usage) -> ModelAnswer:
    """Raises ProviderUnavailable for an answer without text, ProviderRefused when the model declined; both billed."""
    choice = response.choices[0] if response.choices else None
    reason = getattr(choice, "finish_reason", None)
    message = getattr(choice, "message", None)
    text = getattr(message, "content", None) or ""
    declined = (getattr(message, "provider_specific_fields", None) or {}).get("refusal")
    if reason == "content_filter" or (declined and not text):
        refused = f"model {endpoint.name}: it declined to answer; reword the spec or name another model"
        raise with_bill(ProviderRefused(refused), Bill(usage=usage))
    if not text.strip() and reason != "length":
        raise with_bill(ProviderUnavailable(f"model {endpoint.name}: the answer is empty"), Bill(usage=usage))
    whole = text.encode("utf-8", "surrogatepass")
    return ModelAnswer(
        text=whole[:MAX_ANSWER_BYTES].decode("utf-8", "replace"),
        usage=usage,
        cut=reason == "length" or len(whole) > MAX_ANSWER_BYTES,
    )


def _usage(litellm: Any, response: Any, endpoint: Endpoint, quote: Quote | None) -> Usage:
    """What the provider counted. Its cost is unknown without a price, and where a paid one counted nothing."""
    counted = getattr(response, "usage", None)
    tokens_in = max(0, int(getattr(counted, "prompt_tokens", 0) or 0))
    tokens_out = max(0, int(getattr(counted, "completion_tokens", 0) or 0))
    if quote is not None and quote.price == NOTHING:
        cost: int | None = 0
    elif quote is None or not tokens_in + tokens_out:
        cost = None
    elif endpoint.price is not None:
        cost = endpoint.price.cost(input_tokens=tokens_in, output_tokens=tokens_out)
    else:
        cost = _listed_cost(litellm, response, endpoint)
    return Usage(input_tokens=tokens_in, output_tokens=tokens_out, cost_micros=cost)


def _listed_cost(litellm: Any, response: Any, endpoint: Endpoint) -> int | None:
    try:
        dollars = float(litellm.completion_cost(completion_response=response, model=endpoint.model))
    except Exception:  # litellm has no one class for "not in my table": no price is no price
        return None
    return math.ceil(round(dollars * 1_000_000, 6))
