"""Which ways there are to describe and read the models' answers."""

from adapters.registry import resolve
from domain.build.change import Change
from domain.build.plan import Plan
from domain.ports.language_model import AnswerSchemas
from domain.review.findings import Review

SCHEMAS = {"pydantic": "adapters.schemas.pydantic_schemas:PydanticSchemas"}
ANSWERS: dict[str, type] = {"Change": Change, "Plan": Plan, "Review": Review}


def open_schemas(name: str = "pydantic") -> AnswerSchemas:
    """The schemas of every class that a model answers with. Raises UnknownName."""
    schemas: AnswerSchemas = resolve(SCHEMAS, "answer schemas", name)(ANSWERS)
    return schemas
