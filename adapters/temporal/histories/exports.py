"""Rows of the event log in an exported history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError
from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter

from adapters.temporal.histories.rows import RECORDS, rows_of
from domain.errors import InvalidInput
from domain.ports.store import Event


async def exported(text: str, converter: DataConverter, *, name: str) -> list[Event]:
    """All rows, of whichever builds, in one history as ``temporal workflow show -o json`` or the web UI exports it.

    Raises InvalidInput with ``name`` when it is none, or its payloads cannot be read; EventUnreadable.
    """
    rows: list[Event] = []
    try:
        for given in _inputs_of_export(json.loads(text)):
            values = given if isinstance(given, list) else await converter.decode(_payloads(given))
            rows += rows_of(values)
    except (ValueError, TypeError, KeyError, AttributeError, ParseError, RuntimeError) as error:
        raise InvalidInput(
            f"{name} is no history whose payloads can be read: `temporal workflow show -w ID -o json` gives one"
        ) from error
    return rows


def _inputs_of_export(history: Any) -> Iterator[Any]:
    for event in history["events"]:
        scheduled = event.get("activityTaskScheduledEventAttributes")
        if scheduled is not None and scheduled["activityType"]["name"] == RECORDS:
            yield scheduled["input"]


def _payloads(given: Any) -> list[Payload]:
    return [ParseDict(raw, Payload()) for raw in given["payloads"]]
