"""Which ways there are to call language models."""

from collections.abc import Mapping

from adapters.models.endpoint import Endpoint
from adapters.registry import resolve
from domain.ports.language_model import AnswerSchemas, LanguageModel

MODELS = {"litellm": "adapters.models.litellm_model:LitellmModel"}


def open_model(endpoints: Mapping[str, Endpoint], *, schemas: AnswerSchemas, name: str = "litellm") -> LanguageModel:
    """Every configured model behind one port; nothing is imported or called yet. Raises UnknownName."""
    model: LanguageModel = resolve(MODELS, "model adapter", name)(endpoints, schemas)
    return model
