"""What models cost and which of our wishes they take, as litellm's tables say. Its own code only: nothing is called."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from domain.money.usage import NOTHING, Price, Quote

RUNS_HERE = ("ollama", "ollama_chat")
_INPUT = re.compile(r"input_cost_per_token(_above_\d+k_tokens)?")
_OUTPUT = re.compile(r"output_cost_per_(reasoning_)?token(_above_\d+k_tokens)?")


def listed_quote(litellm: Any, model: str) -> Quote | None:
    """The dearest rates that litellm's table has for the model: many cost more above some length of the prompt."""
    source = f"litellm {version('litellm')}"
    if model.partition("/")[0] in RUNS_HERE:
        return Quote(price=NOTHING, source=source)
    rates = _rates(litellm, model)
    if "input_cost_per_token" not in rates or "output_cost_per_token" not in rates:
        return None
    price = Price(input_micros_per_million=_dearest(rates, _INPUT), output_micros_per_million=_dearest(rates, _OUTPUT))
    return Quote(price=price, source=source)


def taken_pins(litellm: Any, model: str, *, base_url: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What of ``wanted`` (parameters as OpenAI names them) the model takes with just these values.

    Raises litellm's error for a model whose provider it does not know.
    """
    name, provider, *_ = litellm.get_llm_provider(model=model, api_base=base_url or None)
    known = litellm.get_supported_openai_params(model=name, custom_llm_provider=provider) or ()
    return {
        parameter: value
        for parameter, value in wanted.items()
        if parameter in known and _takes(litellm, name, provider, {parameter: value})
    }


def _takes(litellm: Any, name: str, provider: str, wanted: Mapping[str, Any]) -> bool:
    """Reasoning models list a temperature and then take no other than 1; litellm knows it when it maps the call."""
    try:
        litellm.utils.get_optional_params(model=name, custom_llm_provider=provider, **wanted)
    except Exception:  # whatever keeps it from mapping the parameter would keep it from sending the call
        return False
    return True


def _rates(litellm: Any, model: str) -> Mapping[str, Any]:
    """The table's own row: what litellm makes of it has 0 where the table has nothing."""
    try:
        row: Mapping[str, Any] = litellm.model_cost[litellm.get_model_info(model)["key"]]
    except Exception:  # litellm has no one class for "not in my table"
        return {}
    return row


def _dearest(rates: Mapping[str, Any], names: re.Pattern[str]) -> int:
    dollars = max(float(rate) for name, rate in rates.items() if names.fullmatch(name) and rate is not None)
    return math.ceil(round(dollars * 1_000_000_000_000, 6))
