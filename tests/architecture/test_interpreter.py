"""The environment runs this checkout and nothing that came along uninvited."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.architecture.sources import HEXAGON, ROOT

# Files that run or change the path at every start of Python; two series of a package of ours were poisoned so.
EDITABLE = "_editable_impl_mendwork.pth"
HEAVY = ("alembic", "boto3", "botocore", "jinja2", "litellm", "psycopg", "sqlalchemy", "yaml")


@pytest.mark.parametrize("module", [*HEXAGON, "worker", "starter"])
def test_our_modules_are_those_of_this_checkout(module: str) -> None:
    origin = importlib.import_module(module).__file__
    assert origin is not None
    assert Path(origin).is_relative_to(ROOT)


def test_nothing_runs_at_every_start_of_python() -> None:
    places = {Path(sysconfig.get_path(key)) for key in ("purelib", "platlib")}
    startup = {
        path.name
        for place in places
        for pattern in ("*.pth", "*.start", "sitecustomize*", "usercustomize*")
        for path in place.glob(pattern)
    }
    assert startup == {EDITABLE}
    lines = {line for place in places if (place / EDITABLE).exists() for line in _lines(place / EDITABLE)}
    assert lines == {str(ROOT)}


def _lines(path: Path) -> list[str]:
    return path.read_text().split()


def imported_by(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after ``statement``."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted({{m.partition('.')[0] for m in sys.modules}})))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
    )
    return set(json.loads(done.stdout))


def test_nothing_heavy_is_imported_by_the_inner_modules_and_the_entry_points() -> None:
    places = ("domain", "workflows", "activities", "adapters/cli", "adapters/settings", "adapters/temporal")
    found = [path for place in places for path in (ROOT / place).rglob("*.py") if path.stem != "launch"]
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in found}
    imported = imported_by(f"import {', '.join(sorted(names))}, starter, worker")
    assert imported & set(HEAVY) == set()


def test_the_command_line_answers_before_temporal_is_imported() -> None:
    """--help has a third of a second; Temporal's client alone takes half of it."""
    imported = imported_by(
        "import starter\ntry:\n    sys.argv = ['mendwork', '--help']\n    sys.stdout = sys.stderr\n    starter.main()\n"
        "except SystemExit:\n    sys.stdout = sys.__stdout__"
    )
    assert "typer" in imported
    assert imported & {*HEAVY, "temporalio", "pydantic", "google"} == set()


def test_every_adapter_imports_without_doing_anything() -> None:
    """Importing reads no file of the project, opens no socket and starts no process."""
    code = (
        "import sys\n"
        "def hook(event, args):\n"
        "    if event in ('socket.connect', 'socket.bind', 'subprocess.Popen', 'os.fork', 'os.posix_spawn'):\n"
        "        raise SystemExit(f'{event} {args}')\n"
        "sys.addaudithook(hook)\n"
    )
    found = (path for path in (ROOT / "adapters").rglob("*.py") if path.stem not in {"__main__", "env"})
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in found}
    ours = sorted(each for each in names if ".versions." not in each and ".compliance" not in each)
    imported_by(code + f"import {', '.join(ours)}")
