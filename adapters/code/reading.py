"""One file's content → its facts and its passages. Source is untrusted: every step is bounded, none can fail."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

from tree_sitter import Node, QueryCursor

from adapters.code.grammars import Grammar, grammar
from domain.context.kinds import MOST_BYTES, language
from domain.context.symbols import FileFacts, Symbol
from domain.context.words import words

_LONG_LINE = 5_000
_DEEPEST = 300
_MOST_SYMBOLS = 4_000
_MOST_NAMES = 4_000
_MOST_OPEN = 10_000
_MOST_ERRORS = 5_000
_BRACKETS = re.compile(rb"[()\[\]{}]")
_SIGNATURE = 200
_CLASSES = ("class", "type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """``passages`` count the words of what lies outside of symbols, then of each symbol without those inside."""

    facts: FileFacts
    passages: tuple[Counter[str], ...]


def read_source(path: str, content: bytes) -> Reading:
    """What an index keeps of a file: of one without a grammar its words only, of one that is no text nothing."""
    if skipped := _skipped(content):
        return Reading(facts=FileFacts(skipped=skipped), passages=(Counter(),))
    found = grammar(language(path))
    facts = _facts(content, found) if found and not _too_deep(content) else FileFacts()
    text = content.decode("utf-8", "replace")
    return Reading(facts=facts, passages=_passages(path, text, facts.symbols))


def _skipped(content: bytes) -> str:
    if len(content) > MOST_BYTES:
        return "too large"
    if b"\0" in content[:8_000]:
        return "binary"
    try:
        content.decode()
    except UnicodeDecodeError:
        # Latin-1 source has few bytes outside of ASCII; a picture has many.
        if sum(byte > 127 for byte in content) * 10 > len(content):
            return "binary"
    return "minified" if max(map(len, content.split(b"\n"))) > _LONG_LINE else ""


def _too_deep(content: bytes) -> bool:
    """The search over a tree takes time that grows with the square of its depth."""
    steps = (1 if bracket in (b"(", b"[", b"{") else -1 for bracket in _BRACKETS.findall(content))
    return max(accumulate(steps), default=0) > _DEEPEST


def _facts(content: bytes, found: Grammar) -> FileFacts:
    tree = found.parser().parse(content)
    if _is_broken(tree.root_node):
        return FileFacts()
    cursor = QueryCursor(found.query, match_limit=_MOST_OPEN)
    cursor.set_max_start_depth(_DEEPEST)
    captures = cursor.captures(tree.root_node)
    calls = dict.fromkeys(_text(node) for node in _ordered(captures, "call"))
    imports: dict[str, None] = dict.fromkeys(_text(node) for node in _ordered(captures, "import"))
    imports |= dict.fromkeys(_text(node).strip("'\"`") for node in _ordered(captures, "quoted"))
    for node in _ordered(captures, "from"):
        for name, module in _imported(node):
            calls.setdefault(name)
            imports.setdefault(module)
    return FileFacts(
        symbols=_symbols(captures, content),
        calls=tuple(name for name in calls if 0 < len(name) <= 100)[:_MOST_NAMES],
        imports=tuple(name for name in imports if 0 < len(name) <= 300)[:_MOST_NAMES],
    )


def _is_broken(root: Node) -> bool:
    """What is no source at all becomes an error with very many parts, over which a search takes quadratic time."""
    return any(node.type == "ERROR" and node.child_count > _MOST_ERRORS for node in (root, *root.children))


def _ordered(captures: dict[str, list[Node]], name: str) -> list[Node]:
    return sorted(captures.get(name, ()), key=lambda node: (node.start_byte, node.end_byte))[:_MOST_NAMES]


def _imported(node: Node) -> list[tuple[str, str]]:
    """``from .a import b as c, d`` gives (b, .a.b) and (d, .a.d); of a star, the module."""
    origin = node.child_by_field_name("module_name")
    module = _text(origin) if origin else ""
    names = [_text(child.child_by_field_name("name") or child) for child in node.children_by_field_name("name")]
    joined = module if module.endswith(".") else f"{module}."
    return [(name, joined + name) for name in names[:200]] or [("", module)]


def _symbols(captures: dict[str, list[Node]], content: bytes) -> tuple[Symbol, ...]:
    """In the order of the file, with the depth of each among the others."""
    lines = content.split(b"\n")
    names = {node.start_byte: _text(node) for kind in ("class", "function", "type")
             for node in captures.get(f"{kind}.name", ())}  # fmt: skip
    starts = sorted(names)
    found: list[Symbol] = []
    open_until: list[tuple[int, str]] = []
    nodes = [(node, kind) for kind in ("class", "function", "type") for node in captures.get(kind, ())]
    for node, kind in sorted(nodes, key=lambda each: (each[0].start_byte, -each[0].end_byte))[:_MOST_SYMBOLS]:
        while open_until and open_until[-1][0] <= node.start_byte:
            open_until.pop()
        inside = open_until[-1][1] if open_until else ""
        name = _first_name(node, names, starts)
        found.append(
            Symbol(
                name=name[:100],
                kind="method" if kind == "function" and inside in _CLASSES else kind,
                line=node.start_point[0] + 1,
                end=node.end_point[0] + 1,
                signature=lines[node.start_point[0]][: 4 * _SIGNATURE].decode("utf-8", "replace").strip()[:_SIGNATURE],
                depth=min(len(open_until), 8),
            )
        )
        open_until.append((node.end_byte, kind))
    return tuple(found)


def _first_name(node: Node, names: dict[int, str], starts: list[int]) -> str:
    at = bisect_left(starts, node.start_byte)
    return names[starts[at]] if at < len(starts) and starts[at] < node.end_byte else ""


def _passages(path: str, text: str, symbols: tuple[Symbol, ...]) -> tuple[Counter[str], ...]:
    """Each line belongs to the innermost symbol around it, the file's own name to what lies outside."""
    lines = text.split("\n")
    owner = [0] * len(lines)
    for number, symbol in enumerate(symbols, 1):
        last = min(symbol.end, len(lines))
        owner[symbol.line - 1 : last] = [number] * (last - symbol.line + 1)
    texts: list[list[str]] = [[] for _ in range(len(symbols) + 1)]
    for number, line in zip(owner, lines, strict=True):
        texts[number].append(line)
    return tuple(Counter(words("\n".join(each))) for each in texts)


def _text(node: Node) -> str:
    return (node.text or b"")[:400].decode("utf-8", "replace")
