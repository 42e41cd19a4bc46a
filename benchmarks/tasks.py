"""What a task costs around the model and the tests, beside the same git commands in a shell loop.

``python -m benchmarks.tasks`` plays tasks on made repositories of 50, 500 and 5,000 files, ours and the shell's in
turn, and prints the median of each step in milliseconds and the ratio of the sums. A task: the mirror is brought up to
date, the tree is listed, three files are read, three are written (two edits, one new file) and committed, the diff is
taken, the result is checked out afresh, what was written is read back by digest, and the head moves.

``--quick`` plays few. ``--folder`` says where; a file system in memory leaves out what a disk costs both alike.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from activities.gates import read_back
from adapters.git.adapter import GitPorts, open_git
from benchmarks.files import alone, commit_all, make_repository, path_of
from benchmarks.ground.printing import options, say
from domain.build.change import Change, Edit, FileOperation
from domain.build.project import Project
from domain.ports.workspace import CommitRequest

SIZES = (50, 500, 5_000)
STEPS = ("mirror", "tree", "read", "commit", "diff", "checkout", "advance")
MOST = 1.3
"""What ours may take beside the shell's."""
_ROUNDS = 15
_NEW = "src/added.py"
_ADDED = "ADDED = True\n"

# The commands that a careful person would write; one process each where git offers it.
_SHELL = r'''
set -eu
step() { now=$EPOCHREALTIME; echo "$1 $(( ${now/./} - ${before/./} ))"; before=$EPOCHREALTIME; }
before=$EPOCHREALTIME
ref=refs/builds/$ROUND
git fetch --quiet --no-tags origin "+refs/heads/main:$ref/base"
base=$(git rev-parse "$ref/base")
git update-ref "$ref/head" "$base" ""
step mirror
git ls-tree -r -l -z --full-tree "$base" > "$WORK/tree"
step tree
for path in $READ; do git cat-file blob "$base:$path" > "$WORK/read"; done
step read
export GIT_INDEX_FILE=$WORK/index
git read-tree "$base"
for path in $EDIT; do
    git cat-file blob "$base:$path" | sed 's/^"""Module /"""Changed module /' > "$WORK/edited"
    blob=$(git hash-object -w --no-filters "$WORK/edited")
    git update-index --cacheinfo "100644,$blob,$path"
done
blob=$(printf "$ADDED" | git hash-object -w --no-filters --stdin)
git update-index --add --cacheinfo "100644,$blob,$NEW"
tree=$(git write-tree)
commit=$(echo "Work" | git commit-tree "$tree" -p "$base")
git update-ref "$ref/candidate" "$commit" ""
unset GIT_INDEX_FILE
step commit
git diff --no-color --find-renames "$base" "$commit" -- > "$WORK/diff"
step diff
mkdir "$WORK/checkout"
git archive "$commit" | tar -x -C "$WORK/checkout"
(cd "$WORK/checkout" && sha256sum $EDIT "$NEW" > /dev/null)
rm -rf "$WORK/checkout" "$WORK/index"
step checkout
git update-ref "$ref/head" "$commit" "$base"
step advance
'''


@dataclass(slots=True)
class Times:
    """Seconds of every task by step."""

    steps: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in STEPS})

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.steps[name].append(time.perf_counter() - began)

    def median(self, name: str) -> float:
        """Milliseconds."""
        return 1000 * statistics.median(self.steps[name])

    def whole(self) -> float:
        """The median of all steps of a task together, milliseconds."""
        return 1000 * statistics.median(map(sum, zip(*self.steps.values(), strict=True)))


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One repository, our ports on it and a mirror for the shell."""

    root: Path
    files: int
    ports: GitPorts
    project: Project

    @property
    def edited(self) -> tuple[str, str]:
        return path_of(0), path_of(self.files // 2)

    @property
    def read(self) -> tuple[str, str, str]:
        return (*self.edited, path_of(self.files - 1))

    def somebody_commits(self, number: int) -> None:
        """So that there is something to fetch."""
        (self.root / "user" / path_of(self.files - 1)).write_text(f"CHANGED = {number}\n")
        commit_all(self.root / "user", f"work {number}")

    async def ours(self, number: int, times: Times) -> None:
        """One task as the activities of a task play it."""
        build, name = f"b{number}", self.project.name
        with times.step("mirror"):
            base = await self.ports.mirrors.fetch_base(self.project, build=build)
        with times.step("tree"):
            await self.ports.sources.files(name, base)
        with times.step("read"):
            for path in self.read:
                await self.ports.sources.read(name, base, path)
        with times.step("commit"):
            made = await self.ports.workspaces.commit(self._request(build, base))
        with times.step("diff"):
            await self.ports.sources.diff(name, base, made.commit)
        with times.step("checkout"):
            async with self.ports.workspaces.checkout(name, made.commit, label=build) as folder:
                await asyncio.to_thread(read_back, folder, made.written)
        with times.step("advance"):
            await self.ports.mirrors.advance(name, build=build, old=base, new=made.commit)

    def _request(self, build: str, base: str) -> CommitRequest:
        edit = Edit(search='"""Module ', replace='"""Changed module ')
        operations = [FileOperation(action="edit", path=path, content="", edits=(edit,)) for path in self.edited]
        operations.append(FileOperation(action="create", path=_NEW, content=_ADDED, edits=()))
        return CommitRequest(project=self.project.name, build=build, base=base, message="Work", at=1_700_000_000,
                             change=Change(summary="Work", operations=tuple(operations)),
                             file_bytes=1_000_000, files=50)  # fmt: skip

    def shell(self, number: int, times: Times) -> None:
        """The same by the shell."""
        environment = {
            **alone(),
            "GIT_DIR": str(self.root / "shell.git"),
            "WORK": str(self.root / "shell"),
            "ROUND": str(number),
            "READ": " ".join(self.read),
            "EDIT": " ".join(self.edited),
            "NEW": _NEW,
            "ADDED": _ADDED.replace("\n", "\\n"),
        }
        done = subprocess.run(["bash", "-c", _SHELL], env=environment, check=True, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            name, _, micros = line.partition(" ")
            times.steps[name].append(int(micros) / 1_000_000)


def prepare(root: Path, files: int) -> Bench:
    """The repository, and a mirror of each."""
    user = make_repository(root / "user", files)
    (root / "shell").mkdir()
    argv = ("git", "clone", "--quiet", "--mirror", "--no-local", str(user), str(root / "shell.git"))
    subprocess.run(argv, env=alone(), check=True, capture_output=True)
    project = Project(name="bench", repository=str(user), branch="main", test=("true",))
    return Bench(root=root, files=files, ports=open_git(root / "state"), project=project)


async def compare(files: int, rounds: int, *, folder: Path | None = None) -> tuple[Times, Times]:
    """Ours and the shell's, in turn; a round of each comes before and does not count."""
    with tempfile.TemporaryDirectory(prefix="mendwork-bench-", dir=folder) as name:
        bench = prepare(Path(name), files)
        ours, shell = Times(), Times()
        for number in range(rounds + 1):
            bench.somebody_commits(number)
            if number == 0:
                await bench.ours(number, Times())
                bench.shell(number, Times())
            elif number % 2:
                await bench.ours(number, ours)
                bench.shell(number, shell)
            else:
                bench.shell(number, shell)
                await bench.ours(number, ours)
        return ours, shell


async def main(sizes: Sequence[int], rounds: int, *, folder: Path | None = None) -> float:
    """Print the table; the largest ratio."""
    say("files  who    " + "".join(f"{name:>10}" for name in STEPS) + "     whole  ratio")
    worst = 0.0
    for files in sizes:
        ours, shell = await compare(files, rounds, folder=folder)
        ratio = ours.whole() / shell.whole()
        worst = max(worst, ratio)
        say(_row(files, "shell", shell))
        say(f"{_row(files, 'ours', ours)}  {ratio:5.2f}")
    say(f"\nmilliseconds, medians of {rounds} tasks; at most {MOST} times the shell's are allowed")
    return worst


def _row(files: int, who: str, times: Times) -> str:
    cells = "".join(f"{times.median(name):10.1f}" for name in STEPS)
    return f"{files:5}  {who:<5}  {cells}{times.whole():10.1f}"


if __name__ == "__main__":
    parser = options(
        "A task's own time beside the same git commands in a shell loop.",
        quick="two tasks on 50 files: whether it still works",
    )
    parser.add_argument("--folder", type=Path, help="where to make the repositories")
    given = parser.parse_args()
    sizes, rounds = (SIZES[:1], 2) if given.quick else (SIZES, _ROUNDS)
    found = asyncio.run(main(sizes, rounds, folder=given.folder))
    sys.exit(0 if given.quick or found <= MOST else 1)
