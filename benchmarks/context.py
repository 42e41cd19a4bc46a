"""Context selection: is the file to change in what a model is shown, and what does choosing cost?

``python -m benchmarks.context [--quick]`` prints two tables. The first: regressions seeded by syntax tree in real
source distributions, specs in words only, no planned files; beside BM25 over whole files at the same budget. "bare" has
the changed function without its docstring, from whose words the spec was made. The second: a made repository.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from activities.repository.selecting import Selector, Wish
from adapters.code import open_code
from benchmarks.ground.printing import options, say
from domain.build.project import Limits
from domain.context.packing import Measure
from domain.ports.workspace import TreeFile
from tests.seeded.measuring import PYTHON, FolderSources, Found, Repository, mean_reciprocal, measured, opened, share

_BUDGET = Limits().context_tokens
_NOUNS = "invoice customer order parcel route price stock shelf ticket member lesson meter valve sensor batch cargo"
_WORDS = _NOUNS.split()
_HEAD = f"{'repository':<16}{'budget':>16}{'cases':>7}{'full':>7}{'shown':>7}{'MRR':>7}   {'BM25':>6}{'MRR':>7}"


async def recall(folder: Path, *, cases: int) -> None:
    """The first table."""
    say(_HEAD)
    totals: dict[str, list[Found]] = {}
    for name in PYTHON:
        repository = opened(name, folder, count=cases)
        for label, budget, bare in _ways(repository):
            found = await measured(repository, folder / "state", budget=budget, bare=bare)
            totals.setdefault(label, []).extend(found)
            say(_row(name, f"{label} {budget}", found))
    for label, found in totals.items():
        say(_row("all", label, found))


def _ways(repository: Repository) -> Iterator[tuple[str, int, bool]]:
    for bare in (False, True):
        for label, budget in (("default", _BUDGET), ("20 %", repository.tokens // 5)):
            yield (f"bare {label}" if bare else label), budget, bare


def _row(name: str, label: str, found: Sequence[Found]) -> str:
    ours = (share([f.full for f in found]), share([f.shown for f in found]), mean_reciprocal([f.rank for f in found]))
    plain = (share([f.plain_shown for f in found]), mean_reciprocal([f.plain_rank for f in found]))
    left = f"{name:<16}{label:>16}{len(found):>7}{ours[0]:>7.0%}{ours[1]:>7.0%}{ours[2]:>7.2f}"
    return f"{left}   {plain[0]:>6.0%}{plain[1]:>7.2f}"


async def speed(folder: Path, *, files: int) -> None:
    """The second table."""
    sources = FolderSources({path: text.encode() for path, text in made(files)})
    selector = Selector(sources=sources, index=open_code(folder / "state"))
    tree = sources.tree()
    began = time.perf_counter()
    read = await selector.prepare("made", tree)
    indexed = time.perf_counter() - began
    await _choose(selector, tree)
    chosen = await _choose(selector, tree)
    changed = sources
    for number in range(3):
        changed = changed.replaced(f"pkg{number}/module{number}.py", f"def fresh{number}(): ...\n".encode())
    again = Selector(sources=changed, index=open_code(folder / "state"))
    began = time.perf_counter()
    more = await again.prepare("made", changed.tree())
    say(f"\n{files} files: {read} read in {indexed:.2f} s ({1000 * indexed / files:.2f} ms a file); "
          f"after a change of 3: {more} read in {time.perf_counter() - began:.3f} s; "
          f"one selection {chosen:.3f} s ({1e6 * chosen / files:.0f} us a file)")  # fmt: skip


async def _choose(selector: Selector, tree: Sequence[TreeFile]) -> float:
    text = "An invoice of a customer whose parcel is late has the wrong price."
    wish = Wish(
        project="made", commit="c", named={"pkg7/module7.py": "planned"}, text=text, measure=Measure(budget=_BUDGET)
    )
    began = time.perf_counter()
    await selector.select(wish, tree)
    return time.perf_counter() - began


def made(files: int) -> Iterator[tuple[str, str]]:
    """Modules of about 60 lines that import and call each other."""
    for number in range(files):
        names = [f"{_WORDS[(number + n) % 16]}_{_WORDS[(number * 7 + n * 3) % 16]}_{number % 97}_{n}" for n in range(8)]
        head = f"from pkg{(number + 1) % 50}.module{(number + 1) % files} import {names[0]} as other\n\n"
        body = "\n\n".join(
            f'def {name}(value, limit=10):\n    """The {name.replace("_", " ")} of a value."""\n'
            f"    if value < limit:\n        return other(value)\n    total = value + limit\n    return total * {n}"
            for n, name in enumerate(names)
        )
        yield f"pkg{number % 50}/module{number}.py", f"{head}{body}\n"


def main(argv: Sequence[str]) -> None:
    """Print both tables."""
    quick: bool = (
        options("What a selected context shows, and what it costs.", quick="fewer cases and files")
        .parse_args(argv)
        .quick
    )
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(recall(Path(folder), cases=2 if quick else 15))
        asyncio.run(speed(Path(folder), files=200 if quick else 5_000))


if __name__ == "__main__":
    main(sys.argv[1:])
