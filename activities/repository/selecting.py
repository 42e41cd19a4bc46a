"""The one selector of what a model is shown of a repository: the same for every model and for every kind of prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from domain.build.context import ContextFile, fit
from domain.context.imports import ImportGraph
from domain.context.packing import Entry, Manifest, Measure, Offer, offers_of, pack
from domain.context.ranking import Evidence, query_of, rank
from domain.context.symbols import FileFacts, outline
from domain.context.words import identifiers
from domain.ports.code import CodeIndex, SourceFile
from domain.ports.workspace import Sources, TreeFile

_MOST_OFFERED = 200
_MOST_NAMES = 400
_READ_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked of a tree: ``named`` maps paths to why they are shown, in order of their weight; ``text`` is what
    the task says in words."""

    project: str
    commit: str
    named: Mapping[str, str]
    text: str
    measure: Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """``files`` are shown in full (or say why not), ``outlines`` by their symbols."""

    manifest: Manifest
    files: tuple[ContextFile, ...]
    outlines: tuple[ContextFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """``index`` is None where nothing is searched: then only what is named is shown."""

    sources: Sources
    index: CodeIndex | None = None

    async def select(self, wish: Wish, tree: Sequence[TreeFile]) -> Selection:
        """Chosen, read and recorded; the same tree, wish and version give the same selection everywhere."""
        files = {file.path: file for file in tree if file.kind in ("file", "executable")}
        named = {path: why for path, why in wish.named.items() if path in files}
        offers = await self._offers(wish, named, files)
        entries = pack(offers, wish.measure)
        contents = await self._contents(wish, [files[entry.path] for entry in entries if entry.how == "full"])
        pages = {path: fit(path, content, left=len(content)) for path, content in contents.items()}
        entries = tuple(_as_read(entry, pages) for entry in entries)
        manifest = Manifest(commit=wish.commit, budget=wish.measure.budget, files=len(tree), entries=entries)
        texts = {offer.path: offer.outline for offer in offers}
        return Selection(
            manifest=manifest,
            files=tuple(_page(entry, pages) for entry in entries if entry.how == "full" or _is_missed(entry)),
            outlines=tuple(
                ContextFile(path=entry.path, text=texts[entry.path]) for entry in entries if entry.how == "outline"
            ),
        )

    async def prepare(self, project: str, files: Sequence[TreeFile]) -> int:
        """Bring the index up to the tree; return how many files had to be read."""
        if self.index is None:
            return 0
        missing = await self.index.missing(project, files)
        read = 0
        for start in range(0, len(missing), _READ_AT_ONCE):
            batch = missing[start : start + _READ_AT_ONCE]
            contents = await self.sources.read_many(project, batch)
            read += await self.index.learn(
                project,
                [SourceFile(path=f.path, oid=f.oid, content=contents[f.path]) for f in batch if f.path in contents],
            )
        return read

    async def _offers(self, wish: Wish, named: Mapping[str, str], files: Mapping[str, TreeFile]) -> list[Offer]:
        if self.index is None:
            return [Offer(path=path, why=why, size=files[path].size, must=True) for path, why in named.items()]
        tree = tuple(files.values())
        await self.prepare(wish.project, tree)
        anchors = await self.index.facts(wish.project, [files[path] for path in named])
        anchored = {path: anchors.get(path, FileFacts()) for path in named}
        ranked = rank(await self._evidence(self.index, wish, tree, anchored))[:_MOST_OFFERED]
        facts = {**await self.index.facts(wish.project, [files[each.path] for each in ranked]), **anchors}
        outlines = {path: outline(known.symbols) for path, known in facts.items()}
        sizes = {path: file.size for path, file in files.items()}
        offers = [
            Offer(path=path, why=why, size=sizes[path], outline=outlines.get(path, ""), must=True)
            for path, why in named.items()
        ]
        offers += offers_of(ranked, sizes, outlines)
        return [replace(each, unfit=_unfit(facts.get(each.path))) for each in offers]

    async def _evidence(
        self, index: CodeIndex, wish: Wish, tree: Sequence[TreeFile], anchors: Mapping[str, FileFacts]
    ) -> Evidence:
        query = query_of(wish.text)
        said = identifiers(wish.text)[:_MOST_NAMES]
        touched = [name for known in anchors.values() for name in (*(s.name for s in known.symbols), *known.calls)]
        imports = await index.imports(wish.project, tree) if anchors else {}
        return Evidence(
            query=query,
            matches=await index.matches(wish.project, tree, query),
            mentions=await index.mentions(wish.project, tree, dict.fromkeys((*said, *touched[: 10 * _MOST_NAMES]))),
            graph=ImportGraph([file.path for file in tree], imports),
            anchors=anchors,
            paths=tuple(file.path for file in tree),
            names=tuple(name for name in said if _is_identifier(name)),
        )

    async def _contents(self, wish: Wish, files: Sequence[TreeFile]) -> Mapping[str, bytes]:
        if files and all(file.oid for file in files):
            return await self.sources.read_many(wish.project, files)
        return {file.path: await self.sources.read(wish.project, wish.commit, file.path) for file in files}


def named_once(*groups: tuple[str, Iterable[str]]) -> dict[str, str]:
    """``(why, paths)`` in order of their weight → path to its first reason."""
    found: dict[str, str] = {}
    for why, paths in groups:
        for path in paths:
            found.setdefault(path, why)
    return found


def _is_identifier(name: str) -> bool:
    """Whether a word of a text looks like a name of code rather than like English."""
    return "_" in name.strip("_") or any(c.isupper() for c in name[1:]) or any(c.isdigit() for c in name)


def _unfit(known: FileFacts | None) -> str:
    return {"": "", "binary": "it is not text", "minified": "its lines are too long to be source"}.get(
        known.skipped if known else "", ""
    )


def _is_missed(entry: Entry) -> bool:
    return entry.how == "left out"


def _as_read(entry: Entry, pages: Mapping[str, ContextFile]) -> Entry:
    """A file that turned out to be no text is not shown, and the manifest says so."""
    page = pages.get(entry.path)
    if entry.how != "full" or (page and not page.left_out):
        return entry
    return replace(entry, how="left out", tokens=0, reason=page.left_out if page else "it cannot be read")


def _page(entry: Entry, pages: Mapping[str, ContextFile]) -> ContextFile:
    if entry.how == "full":
        return pages[entry.path]
    return ContextFile(path=entry.path, text="", left_out=entry.reason)
