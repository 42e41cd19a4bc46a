"""What the disturbed deliveries are about: a shop whose releases note what was done to them, and its bad versions."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.target.launch.earlier import born_at
from adapters.target.local.adapter import open_local
from adapters.target.local.overview import Overview, overview, stop_all
from tests.delivered import below, processes
from tests.delivery_invariants import check_stopped
from tests.e2e import service
from tests.e2e.shops import asked
from tests.e2e.workshop import Workshop, git
from tests.trees import all_below

SHOP = "calc"
SECRET = "SHOP_SECRET"
MAIN = 'if __name__ == "__main__":\n'
NOTING = f'{MAIN}    os.environ["{SECRET}"]\n    open(os.path.expanduser("~/starts"), "a").write(".")\n'
SERVE = service.SERVE.replace(MAIN, NOTING)
MIGRATE = """import os
import sys

with open(os.path.expanduser("~/" + sys.argv[1]), "a") as notes:
    notes.write(".")
"""
GOOD = "def price(count):\n    return 11 * count\n"
BAD = "def price(count):\n    raise RuntimeError(count)\n"
FILES = {**service.FILES, "serve.py": SERVE, "migrate.py": MIGRATE}
BRANCHES = {"bad": BAD, "better": GOOD, "worse": BAD + "\n"}
"""By branch: what prices.py is there. Each is one commit after main."""

STEP = '[[projects.calc.delivery.steps]]\nname = "migrate"\nkind = "compensatable"\n'
STEP += 'run = "python3 migrate.py migrated"\nundo = "python3 migrate.py taken-back"\n'
RISK = "[projects.calc.delivery.risk]\nlimit = 0.7\nweights = { gates = 0.0, novelty = 0.0, failures = 0.0 }\n"
WATCH = 'seconds = 2\nwindow = 1\nrate = 40\nmin_asked = 20\nmax_slowdown = 1000\non_no_data = "extend"'
KEEP = f'keep = 1\nsecrets = ["{SECRET}"]'

TASK = {
    "id": "discount",
    "title": "Add a discount",
    "instructions": "Ten off from ten on.",
    "files": ["prices.py"],
    "tests": ["test_discount.py"],
    "depends_on": [],
}
DISCOUNT = "\n\ndef discount(count):\n    return 10 if count > 9 else 0\n"
TEST = (
    "import unittest\n\nimport prices\n\n\nclass T(unittest.TestCase):\n"
    "    def test_it(self):\n        self.assertEqual(prices.discount(10), 10)\n"
)
OPERATIONS = [
    {
        "action": "edit",
        "path": "prices.py",
        "content": "",
        "edits": [{"search": "    return 10 * count\n", "replace": f"    return 10 * count\n{DISCOUNT}"}],
    },
    {"action": "create", "path": "test_discount.py", "content": TEST, "edits": []},
]
ANSWERS: list[dict[str, Any]] = [
    {"role": "Plan", "answer": {"summary": "one", "tasks": [TASK]}},
    {"role": "Change", "task": "discount", "answer": {"summary": "Add it", "operations": OPERATIONS}},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What is seen of a target without asking Mendwork. ``sites`` is, by project and environment, the live release and
    the state of each unit; ``told`` what an answer of each site is; ``programs`` how many processes serve, by name;
    ``files`` what lies there; ``done`` how often each unit was started, migrated and taken back. ``exact`` differs from
    machine to machine: who serves, since when, on which port, as which user."""

    sites: Mapping[str, tuple[int, Mapping[int, str]]]
    told: Mapping[str, tuple[int, int, str]]
    programs: Mapping[str, int]
    files: frozenset[str]
    done: Mapping[str, Mapping[str, int]]
    exact: Mapping[str, tuple[int, str, int, int]] = field(compare=False)


class ShopStage(Workshop):
    """A workshop whose project is delivered, with a step of its own, a secret, and every release asked for."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, answers=ANSWERS, files=FILES)
        token = hashlib.sha256(str(root).encode()).hexdigest()[:20]
        self.environment |= {SECRET: f"canary-shop-{token}", "SCRIPTED_API_KEY": f"canary-key-{token}"}
        for branch, prices in BRANCHES.items():
            git(self.repository, "checkout", "-q", "-b", branch, "main")
            (self.repository / "prices.py").write_text(prices)
            git(self.repository, "commit", "-q", "-am", branch)
        git(self.repository, "checkout", "-q", "--detach", "main")

    @contextmanager
    def serving(self, dev: tuple[str, ...], *, extra: str = "") -> Iterator[None]:
        """Everything up; afterwards nothing of it runs, nor of what it delivered. ``extra`` may be other projects."""
        consent = 'approve = ["release"]\nreview = false\nbranch = "main"\nland = "target"\n'
        delivery = service.section(SHOP, watch=WATCH, more=KEEP) + RISK + STEP
        try:
            with self.running(dev=dev, extra=delivery + extra, consent=consent, unchecked="each chapter is"):
                yield
        finally:
            stop_all(open_local(self.state))
            check_stopped(self)

    def outside(self) -> Outside:
        """As it is now."""
        target = open_local(self.state)
        seen, root = overview(target), target.folders.root
        units = {f"{s.project}/{s.environment}/{u.release}": u for s in seen.sites for u in s.units}
        return Outside(
            sites={
                f"{site.project}/{site.environment}": (site.live, {u.release: _up(u.state) for u in site.units})
                for site in seen.sites
            },
            told={f"{site.project}/{site.environment}": _told(site.url) for site in seen.sites if site.url},
            programs=_programs(seen),
            files=frozenset(_files(root)),
            done={name: _done(root / name / "scratch") for name in units},
            exact={name: (unit.pid, born_at(str(unit.pid)), unit.port, unit.uid) for name, unit in units.items()}
            | {f"{s.project}/{s.environment}": (s.pid, born_at(str(s.pid)), 0, 0) for s in seen.sites},
        )


def _up(state: str) -> str:
    """The supervisor calls a program started that has not run for long yet."""
    return "running" if state == "starting" else state


def _told(url: str) -> tuple[int, int, str]:
    answer = asked(url)
    return answer.status, answer.release, answer.body


def _programs(seen: Overview) -> Counter[str]:
    """Descendants of the supervisor by what they run."""
    known = {process.pid: process for process in processes()}
    pids = below({seen.supervisor}, known) if seen.supervisor in known else set()
    return Counter(known[pid].words.split(b"\0")[0].decode().rpartition("/")[2] for pid in pids)


def _files(root: Path) -> Iterator[str]:
    """All but logs, locks, sockets and what belongs to a release alone."""
    for path in all_below(root):
        name = str(path.relative_to(root))
        if not any(part in name for part in (".supervisor/l", ".sock", "/scratch/", "/steps/")):
            yield name


def _done(scratch: Path) -> dict[str, int]:
    return {path.name: len(path.read_text()) for path in scratch.iterdir() if path.is_file()}
