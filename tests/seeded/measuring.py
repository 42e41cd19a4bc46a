"""Is the file to change in what a model is shown? Measured on seeded regressions, beside plain BM25."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from activities.repository.selecting import Selector, Wish
from adapters.code import open_code
from domain.context.packing import Manifest, Measure
from domain.context.ranking import plain, query_of
from domain.context.tokens import tokens
from domain.ports.code import CodeIndex
from domain.ports.workspace import TreeFile
from tests.seeded.mutations import Regression, regressions
from tests.seeded.sdists import SDISTS, unpacked

PYTHON = ("click", "attrs", "more-itertools", "jinja2")
SEED = 6


class FolderSources:
    """A folder's files as a commit's, with git's own object ids."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._contents = dict(files)

    @classmethod
    def below(cls, root: Path) -> FolderSources:
        """Every regular file below ``root``."""
        paths = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
        return cls({str(path.relative_to(root)): path.read_bytes() for path in paths})

    def replaced(self, path: str, content: bytes) -> FolderSources:
        """The same with one file's content changed."""
        return FolderSources({**self._contents, path: content})

    def tree(self) -> tuple[TreeFile, ...]:
        """As ``files`` would list it."""
        return tuple(
            TreeFile(path=path, size=len(content), kind="file", oid=git_oid(content))
            for path, content in sorted(self._contents.items())
        )

    async def files(self, project: str, commit: str) -> tuple[TreeFile, ...]:
        return self.tree()

    async def read(self, project: str, commit: str, path: str) -> bytes:
        return self._contents[path]

    async def read_many(self, project: str, files: Sequence[TreeFile]) -> Mapping[str, bytes]:
        return {file.path: self._contents[file.path] for file in files}

    async def diff(self, project: str, old: str, new: str) -> str:
        raise NotImplementedError

    async def contains(self, project: str, commit: str, *, ancestor: str) -> bool:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Of one regression at one budget: is its file shown in full, shown at all (in full or as an outline), and at which
    rank (0: none); the same of plain BM25 over whole files, which shows them in full, best first, while they fit."""

    full: bool
    shown: bool
    rank: int
    plain_shown: bool
    plain_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """An unpacked source distribution and its regressions."""

    name: str
    sources: FolderSources
    cases: tuple[Regression, ...]

    @property
    def tokens(self) -> int:
        """The estimate of all of its files."""
        return sum(tokens(file.size) for file in self.sources.tree())


def opened(name: str, folder: Path, *, count: int, seed: int = SEED) -> Repository:
    """``name`` of ``sdists``, unpacked below ``folder``."""
    root = unpacked(name, folder / name)
    cases = tuple(regressions(root, SDISTS[name].package, count=count, seed=seed))
    return Repository(name=name, sources=FolderSources.below(root), cases=cases)


async def measured(repository: Repository, state: Path, *, budget: int, bare: bool = False) -> list[Found]:
    """One row a regression, each on its own tree: only the changed file is read again. ``bare``: its function has no
    docstring there, which is where the words of the spec came from."""
    index = open_code(state)
    return [await _one(index, repository, case, (budget, bare)) for case in repository.cases]


async def _one(index: CodeIndex, repository: Repository, case: Regression, how: tuple[int, bool]) -> Found:
    budget, bare = how
    sources = repository.sources.replaced(case.path, (case.undocumented if bare else case.source).encode())
    tree = sources.tree()
    wish = Wish(project=repository.name, commit="c", named={}, text=case.spec, measure=Measure(budget=budget))
    manifest = (await Selector(sources=sources, index=index).select(wish, tree)).manifest
    query = query_of(case.spec)
    scored = plain(query, await index.matches(repository.name, tree, query))
    ranked = sorted(scored, key=lambda path: (-scored[path], path))
    taken = set(_while_they_fit(ranked, {file.path: file.size for file in tree}, budget))
    return Found(
        full=case.path in manifest.paths("full"),
        shown=case.path in (*manifest.paths("full"), *manifest.paths("outline")),
        rank=_rank(case.path, manifest),
        plain_shown=case.path in taken,
        plain_rank=ranked.index(case.path) + 1 if case.path in scored else 0,
    )


def share(found: Sequence[bool]) -> float:
    """The part that is true, from 0 to 1."""
    return sum(found) / len(found) if found else 0.0


def mean_reciprocal(ranks: Sequence[int]) -> float:
    """The mean of 1/rank; 0 for what has none."""
    return sum(1 / rank for rank in ranks if rank) / len(ranks) if ranks else 0.0


def git_oid(content: bytes) -> str:
    """The name that git gives a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _rank(path: str, manifest: Manifest) -> int:
    paths = [entry.path for entry in manifest.entries]
    return paths.index(path) + 1 if path in paths else 0


def _while_they_fit(ranked: Sequence[str], sizes: Mapping[str, int], budget: int) -> Iterator[str]:
    for path in ranked:
        if (cost := tokens(sizes[path])) <= budget:
            budget -= cost
            yield path
