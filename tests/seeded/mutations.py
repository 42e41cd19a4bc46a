"""Regressions seeded by syntax tree: one small fault in one documented function, chosen by a seed alone.

A fault is what a person might write by mistake: a comparison turned around, a constant off by one, a lost ``not``, two
arguments swapped. Its spec says what the function is for in the words of its own docstring, with every name of the
function, its class and its file taken out.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_SHORTEST = 60
_WORDS_OF_A_SPEC = 80
_FEWEST_WORDS = 8
_LEFT_OUT = "…"
_OPENING = "Something that worked is broken. It is meant to do this, and no longer does:"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """``path`` is relative to the repository; ``source`` is the whole file with the fault on ``line``.

    ``undocumented`` is the same without the function's docstring, so that the words of the spec are not simply there.
    """

    path: str
    function: str
    line: int
    what: str
    source: str
    undocumented: str
    spec: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """``names`` are all that the file defines, and the parts of its path."""

    path: str
    text: str
    module: ast.Module
    names: frozenset[str]

    @classmethod
    def of(cls, path: str, text: str) -> _Source:
        module = ast.parse(text)
        defined = {n.name for n in ast.walk(module) if isinstance(n, Function | ast.ClassDef)}
        named = {*defined, *Path(path).with_suffix("").parts}
        return cls(path=path, text=text, module=module, names=frozenset({*named, *(name.strip("_") for name in named)}))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Documented:
    node: Function
    inside: tuple[str, ...]
    docstring: str


def regressions(root: Path, package: str, *, count: int, seed: int) -> list[Regression]:
    """``count`` faults in different functions of the files below ``package``, fewer when there are not so many."""
    found: list[tuple[bytes, _Source, _Documented]] = []
    for file in sorted((root / package).rglob("*.py")):
        source = _Source.of(str(file.relative_to(root)), file.read_text())
        for each in _documented(source.module):
            order = hashlib.sha256(f"{seed}:{source.path}:{each.node.lineno}".encode()).digest()
            found.append((order, source, each))
    made = (_seeded(source, each, order) for order, source, each in sorted(found, key=lambda one: one[0]))
    return list(islice((regression for regression in made if regression), count))


def masked(text: str, names: frozenset[str]) -> str:
    """``text`` with every word that is one of ``names`` (in any case) left out."""
    lower = {name.lower() for name in names}
    return re.sub(r"\w+", lambda word: _LEFT_OUT if word[0].lower() in lower else word[0], text)


def _documented(module: ast.Module) -> Iterator[_Documented]:
    def walk(node: ast.AST, inside: tuple[str, ...]) -> Iterator[_Documented]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function):
                if (text := ast.get_docstring(child)) and len(text) >= _SHORTEST:
                    yield _Documented(node=child, inside=inside, docstring=text)
            elif isinstance(child, ast.ClassDef):
                yield from walk(child, (*inside, child.name))
            elif isinstance(child, ast.If | ast.Try):
                yield from walk(child, inside)

    return walk(module, ())


def _seeded(origin: _Source, each: _Documented, order: bytes) -> Regression | None:
    """One of the function's possible faults, as text: the rest of the file stays byte for byte."""
    faults = [fault for node in ast.walk(each.node) for fault in _faults(node)]
    path, source, names = origin.path, origin.text, _names(origin, each)
    spec = _spec(each.docstring, names)
    if not faults or len(re.findall(r"[A-Za-z]{3,}", spec)) < _FEWEST_WORDS:
        return None
    node, new, what = faults[order[0] % len(faults)]
    changed = _replaced(source, {_span(source, node): new})
    undocumented = _replaced(source, {_span(source, node): new, _span(source, each.node.body[0]): '"""Nothing."""'})
    try:
        ast.parse(undocumented)
    except SyntaxError:
        return None
    name = ".".join((*each.inside, each.node.name))
    return Regression(
        path=path,
        function=name,
        line=node.lineno,
        what=what,
        source=changed,
        undocumented=undocumented,
        spec=f"{masked(_OPENING, names)} {spec}",
        names=names,
    )


def _faults(node: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        turned = ast.Compare(left=node.left, ops=[_TURNED[type(node.ops[0])]()], comparators=node.comparators)
        yield node, f"({ast.unparse(turned)})", "a comparison is turned around"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, f"({ast.unparse(node.operand)})", "a not is lost"
    elif isinstance(node, ast.BoolOp):
        other = ast.BoolOp(op=ast.Or() if isinstance(node.op, ast.And) else ast.And(), values=node.values)
        yield node, f"({ast.unparse(other)})", "and is or"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        other_sign = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield node, f"({ast.unparse(ast.BinOp(left=node.left, op=other_sign, right=node.right))})", "a sign is wrong"
    elif isinstance(node, ast.Constant) and type(node.value) is int and hasattr(node, "lineno"):
        yield node, str(node.value + 1), "a constant is off by one"
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield node, str(not node.value), "a default is wrong"
    elif isinstance(node, ast.Call) and len(node.args) == 2 and not any(isinstance(a, ast.Starred) for a in node.args):
        swapped = ast.Call(func=node.func, args=node.args[::-1], keywords=node.keywords)
        yield node, ast.unparse(swapped), "two arguments are swapped"


def _names(origin: _Source, each: _Documented) -> frozenset[str]:
    """Every name that would give the place away: of the file's symbols, the function's own, its path."""
    assigned = {n.id for n in ast.walk(each.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    arguments = {a.arg for a in ast.walk(each.node.args) if isinstance(a, ast.arg)}
    return frozenset(filter(None, origin.names | assigned | arguments))


def _spec(docstring: str, names: frozenset[str]) -> str:
    """The docstring's sentences without examples, roles, parameter lists and names."""
    kept: list[str] = []
    for line in docstring.splitlines():
        if line.lstrip().startswith((">>>", "...", ":param", ".. ", ":return", ":raises", "Args:", "Parameters")):
            break
        kept.append(line)
    text = re.sub(r":\w+(:\w+)?:`[^`]*`|``[^`]*``|`[^`]*`|\*\w+\*", _LEFT_OUT, " ".join(" ".join(kept).split()))
    return " ".join(masked(text, names).split()[:_WORDS_OF_A_SPEC])


def _span(source: str, node: ast.expr | ast.stmt) -> tuple[int, int]:
    return _offset(source, node.lineno, node.col_offset), _offset(source, node.end_lineno, node.end_col_offset)


def _replaced(source: str, changes: Mapping[tuple[int, int], str]) -> str:
    """Each span by its new text, the last first."""
    for (start, end), new in sorted(changes.items(), reverse=True):
        source = source[:start] + new + source[end:]
    return source


def _offset(source: str, line: int | None, column: int | None) -> int:
    """Where a node's position (in bytes of UTF-8) is in the text."""
    lines = source.splitlines(keepends=True)
    before = "".join(lines[: (line or 1) - 1])
    return len(before) + len(lines[(line or 1) - 1].encode()[: column or 0].decode())
