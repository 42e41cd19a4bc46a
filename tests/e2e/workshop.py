"""A whole Mendwork on a small project: repository, configuration, scripted provider, Temporal and workers, all real."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from tests.forks import Ran as Ran
from tests.forks import run_command
from tests.grafting import grafted
from tests.spawning import spawned

CHECKOUT = Path(__file__).resolve().parents[2]
MENDWORK = (sys.executable, "-P", "-m", "starter")
DEV = (*MENDWORK, "dev")

CALC = "def add(a, b):\n    return a + b\n"
TESTS = """import unittest

from calc import add


class AddTest(unittest.TestCase):
    def test_small(self):
        self.assertEqual(add(1, 2), 3)

    def test_zero(self):
        self.assertEqual(add(0, 0), 0)

    def test_negative(self):
        self.assertEqual(add(-1, 1), 0)


if __name__ == "__main__":
    unittest.main()
"""
FILES = {"calc.py": CALC, "test_calc.py": TESTS, "README.md": "# calc\n"}
UNASKED = "approve = []\nreview = false\n"
SPEC = "# Multiply\n\nThe calculator multiplies and squares.\n"


def planned(task: str, *, depends_on: Sequence[str] = ()) -> dict[str, Any]:
    """A task of a plan."""
    return {
        "id": task,
        "title": f"Add {task}",
        "instructions": f"Add the function {task} with a test.",
        "files": ["calc.py"],
        "tests": [f"test_{task}.py"],
        "depends_on": list(depends_on),
    }


def written(name: str, body: str, check: str) -> dict[str, Any]:
    """A change that adds the function ``name`` and a test that ``check`` holds."""
    test = f"import unittest\n\nimport calc\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        {check}\n"
    return {
        "summary": f"Add {name}",
        "operations": [
            {
                "action": "edit",
                "path": "calc.py",
                "content": "",
                "edits": [{"search": "    return a + b\n", "replace": f"    return a + b\n\n\n{body}"}],
            },
            {"action": "create", "path": f"test_{name}.py", "content": test, "edits": []},
        ],
    }


PLAN = {"summary": "two", "tasks": [planned("mul"), planned("square", depends_on=["mul"])]}
MUL = written("mul", "def mul(a, b):\n    return a * b\n", "self.assertEqual(calc.mul(2, 3), 6)")
WRONG_MUL = written("mul", "def mul(a, b):\n    return a + b\n", "self.assertEqual(calc.mul(2, 3), 6)")
SQUARE = written("square", "def square(a):\n    return mul(a, a)\n", "self.assertEqual(calc.square(3), 9)")
ANSWERS: list[dict[str, Any]] = [
    {"role": "Plan", "answer": PLAN},
    {"role": "Change", "task": "mul", "attempt": 1, "answer": WRONG_MUL},
    {"role": "Change", "task": "mul", "attempt": 2, "answer": MUL},
    {"role": "Change", "task": "square", "attempt": 1, "answer": SQUARE},
]


def git(folder: Path, *arguments: str) -> str:
    """Run git as a user would, and return what it prints."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    argv = ["git", "-C", str(folder), "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *arguments]
    return subprocess.run(argv, env=environment, check=True, capture_output=True, text=True).stdout


def make_repository(folder: Path, files: Mapping[str, str]) -> Path:
    """A repository with one commit on main."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "start")
    return folder


def wait_for(what: Callable[[], Any], *, seconds: float = 60.0, why: str = "the condition") -> Any:
    """Poll ``what`` until it is true and return its value; fail with ``why`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = what()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{why} did not happen within {seconds} s")


class Workshop:
    """One folder with a project, its configuration and what runs for it."""

    def __init__(
        self, root: Path, *, answers: list[dict[str, Any]] = ANSWERS, files: Mapping[str, str] = FILES
    ) -> None:
        self.root = root
        self.state = root / ".mendwork"
        self.bill = root / "bill.jsonl"
        self.repository = make_repository(root / "repository", files)
        self.spec = root / "spec.md"
        self.spec.write_text(SPEC)
        self.answers = root / "answers.yaml"
        self.answers.write_text(yaml.safe_dump(answers))
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "MENDWORK_CONFIG": str(root / "mendwork.toml"),
            "TEMPORAL_CONFIG_FILE": str(root / "no-profiles.toml"),
            "SCRIPTED_API_KEY": f"canary-key-{hashlib.sha256(str(root).encode()).hexdigest()[:20]}",
        }

    def configure(
        self, *, base_url: str = "http://127.0.0.1:9/v1", extra: str = "", test: str = "", consent: str = UNASKED
    ) -> None:
        """Write mendwork.toml with one project and one model behind ``base_url``, for which ``extra`` may say
        {base_url}; ``consent`` is what the project asks people."""
        (self.root / "mendwork.toml").write_text(
            "[temporal]\nport = 0\nui_port = 0\n\n[timeouts]\nheartbeat = 2\nsticky = 2\n\n"
            f'[projects.calc]\nrepository = "repository"\ntest = "{test or "python3 -m unittest -v"}"\n{consent}\n'
            f'[models.coder]\nmodel = "openai/scripted"\nbase_url = "{base_url}"\napi_key_env = "SCRIPTED_API_KEY"\n'
            "input_price = 1.0\noutput_price = 4.0\n" + extra.replace("{base_url}", base_url)
        )

    def mendwork(self, *arguments: str, seconds: float = 90.0, stdin: str = "") -> Ran:
        """Run the command line to its end."""
        return run_command(arguments, folder=self.root, environment=self.environment, stdin=stdin, seconds=seconds)

    def status(self, build: str) -> dict[str, Any]:
        """``mendwork status BUILD --json``."""
        ran = self.mendwork("status", build, "--json")
        assert ran.code == 0, ran.err
        value: dict[str, Any] = json.loads(ran.out)
        return value

    def billed(self) -> list[dict[str, Any]]:
        """What the provider was asked, a line each."""
        return [json.loads(line) for line in self.bill.read_text().splitlines()] if self.bill.exists() else []

    def pids(self) -> dict[str, int]:
        """The worker processes that run now; empty before the start."""
        try:
            workers: dict[str, int] = json.loads((self.state / "dev.json").read_text())["workers"]
        except (FileNotFoundError, ValueError):
            return {}
        return workers

    def kill(self, worker: str) -> int:
        """kill -9 one worker, and return the pid that it had."""
        pid = self.pids()[worker]
        os.kill(pid, signal.SIGKILL)
        return pid

    @contextlib.contextmanager
    def running(self, *, dev: Sequence[str] = (), unchecked: str = "", **configuration: str) -> Iterator[None]:
        """Everything up: the scripted provider, Temporal, workers that poll, which are forked unless ``dev`` is said.
        See ``checked`` for the end."""
        with self.provider() as base_url:
            self.configure(base_url=base_url, **configuration)
            for log in (self.state / "logs").glob("worker-*.log"):
                log.unlink()  # that of an earlier time would say that its worker serves
            with self.spawned(dev or grafted(), log="dev.log"):
                wait_for(self.is_ready, seconds=90, why=f"mendwork dev ({self.root / 'dev.log'})")
                with self.checked(unless=unchecked):
                    yield

    @contextlib.contextmanager
    def checked(self, *, unless: str = "") -> Iterator[None]:
        """After a block that held, so have the invariants of everything that was built and delivered. Temporal and the
        workers run then; where they do not, ``unless`` says why nothing can be asked."""
        yield
        if not unless:
            import_module("tests.invariants").check_all(self)  # which has to know what a workshop is

    @contextlib.contextmanager
    def provider(self) -> Iterator[str]:
        """The scripted provider alone; its base URL."""
        argv = [sys.executable, "-P", "-m", "adapters.models.scripted"]
        argv += ["--answers", str(self.answers), "--bill", str(self.bill)]
        with self.spawned(argv, log="scripted.log"):
            line = wait_for(lambda: (self.root / "scripted.log").read_text().partition("\n")[0], why="the provider")
            yield json.loads(line)["base_url"]

    def spawned(self, argv: Sequence[str], *, log: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """A process of its own group with its output in a file, ended by SIGTERM at the end."""
        return spawned(argv, log=self.root / log, folder=self.root, environment=self.environment)

    def is_ready(self) -> bool:
        """Whether all workers poll; the fifth is there where a project has a target."""
        logs = (self.state / "logs").glob("worker-*.log")
        classes = 5 if ".delivery]" in (self.root / "mendwork.toml").read_text() else 4
        return len(self.pids()) == classes and sum("serving " in log.read_text() for log in logs) == classes
