"""The documents that activities hand to each other by digest: canonical JSON of domain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from domain.build.change import Change, Edit, FileOperation
from domain.build.plan import Plan, PlannedTask
from domain.ports.blobs import Blobs


def canonical(value: object) -> bytes:
    """JSON with one spelling: the same value has the same digest."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


async def read_json(blobs: Blobs, digest: str) -> Any:
    """The value of a JSON blob."""
    return json.loads(await blobs.get(digest))


async def read_plan(blobs: Blobs, digest: str) -> Plan:
    """A plan that a model answered and ``AnswerSchemas`` decoded."""
    raw = await read_json(blobs, digest)
    return Plan(summary=raw["summary"], tasks=tuple(_task(task) for task in raw["tasks"]))


async def read_change(blobs: Blobs, digest: str) -> Change:
    """A change that a model answered and ``AnswerSchemas`` decoded."""
    raw = await read_json(blobs, digest)
    operations = tuple(_operation(op) for op in raw["operations"])
    return Change(summary=raw["summary"], operations=operations, needs=tuple(raw.get("needs", ())))


def _task(raw: Mapping[str, Any]) -> PlannedTask:
    lists = {name: tuple(raw[name]) for name in ("files", "tests", "depends_on")}
    return PlannedTask(id=raw["id"], title=raw["title"], instructions=raw["instructions"], **lists)


def _operation(raw: Mapping[str, Any]) -> FileOperation:
    edits = tuple(Edit(search=edit["search"], replace=edit["replace"]) for edit in raw["edits"])
    return FileOperation(action=raw["action"], path=raw["path"], content=raw["content"], edits=edits)
