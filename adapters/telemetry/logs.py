"""One line of JSON for each record of a log, with the build, task and attempt that it is about."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

from adapters.telemetry.subject import current

_TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"
_FROM_TEMPORAL = {
    "workflow_id": "workflow",
    "workflow_run_id": "run",
    "run_id": "run",
    "activity_type": "activity",
    "attempt": "try",
}


class JsonLines(logging.Formatter):
    """``time`` (UTC), ``level``, ``logger``, ``message``; ``build``, ``task``, ``attempt``, ``workflow``, ``run``,
    ``activity`` and ``try`` where they are known; ``error`` and ``at`` of an exception: its class and where it came
    from, never its text, which may quote a model or an address."""

    def format(self, record: logging.LogRecord) -> str:
        """One line without its end."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        subject = current.get()
        line |= {"build": subject.build, "task": subject.task, "attempt": subject.attempt}
        for details in (record.__dict__.get("temporal_workflow"), record.__dict__.get("temporal_activity")):
            if isinstance(details, dict):
                line |= {ours: details[theirs] for theirs, ours in _FROM_TEMPORAL.items() if theirs in details}
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frames = traceback.extract_tb(error.__traceback__)
            line |= {"error": type(error).__name__, "at": [f"{f.filename}:{f.lineno} {f.name}" for f in frames]}
        return json.dumps({key: value for key, value in line.items() if value not in ("", 0, None)}, default=str)


def configure_logs(kind: str) -> None:
    """Send what this process logs to stderr, as "text" or "json"."""
    from temporalio import activity, workflow

    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if kind == "json" else logging.Formatter(_TEXT))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    if kind == "json":  # the details are fields then
        activity.logger.activity_info_on_message = False
        workflow.logger.workflow_info_on_message = False
