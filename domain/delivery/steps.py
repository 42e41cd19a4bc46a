"""The steps of a delivery, typed by what it takes to take them back."""

from __future__ import annotations

from collections.abc import Mapping

READ_ONLY = "read-only"
REVERSIBLE = "reversible"
COMPENSATABLE = "compensatable"
FINAL = "final"
KINDS = (READ_ONLY, REVERSIBLE, COMPENSATABLE, FINAL)
"""Read-only: nothing to undo. Reversible: undoing leaves no trace. Compensatable: the world saw it, and is led back.
Final: it cannot be taken back, and a person is always asked before."""

STEPS: Mapping[str, str] = {
    "snapshot": READ_ONLY,
    "artifact": REVERSIBLE,
    "stage": REVERSIBLE,
    "integration": READ_ONLY,
    "start": REVERSIBLE,
    "switch": COMPENSATABLE,
    "watch": READ_ONLY,
}
"""Mendwork's own steps; a project's own are typed in its configuration."""

UNDO: Mapping[str, str] = {"stage": "retire_unit", "start": "retire_unit", "switch": "restore_traffic"}
"""What is registered before a step acts. The artefact needs none: it is a blob, which nothing outside sees."""
