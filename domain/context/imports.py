"""Who imports whom among the files of one tree, from what the files write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from domain.context.kinds import language

_SCRIPTS = (".js", ".ts", ".tsx", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".json")
_MOST_OF_A_PACKAGE = 50


class ImportGraph:
    """Resolves imports by path alone: a module is the file whose path ends like its name. Ambiguous names give all."""

    def __init__(self, paths: Iterable[str], imports: Mapping[str, Iterable[str]]) -> None:
        self._paths = frozenset(paths)
        self._modules: dict[str, list[str]] = defaultdict(list)
        self._packages: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self._paths):
            self._enter(path)
        self._imports = {path: self._resolved(path, names) for path, names in sorted(imports.items())}
        self._importers: dict[str, set[str]] = defaultdict(set)
        for path, found in self._imports.items():
            for each in found:
                self._importers[each].add(path)

    def imported(self, path: str) -> tuple[str, ...]:
        """The files that ``path`` imports, sorted."""
        return tuple(sorted(self._imports.get(path, ())))

    def importers(self, path: str) -> tuple[str, ...]:
        """The files that import ``path``, sorted."""
        return tuple(sorted(self._importers.get(path, ())))

    def _enter(self, path: str) -> None:
        pure, known = PurePosixPath(path), language(path)
        if known == "python":
            parts = pure.parts[:-1] if pure.stem == "__init__" else pure.with_suffix("").parts
            for start in range(len(parts)):
                self._modules[".".join(parts[start:])].append(path)
        elif known == "go" and not path.endswith("_test.go"):
            for start in range(len(pure.parts) - 1):
                self._packages["/".join(pure.parts[start:-1])].append(path)

    def _resolved(self, path: str, names: Iterable[str]) -> frozenset[str]:
        known = language(path)
        found: set[str] = set()
        for name in names:
            if known == "python":
                found.update(self._python(path, name))
            elif known == "go":
                found.update(self._go(name))
            elif known:
                found.update(self._script(path, name))
        return frozenset(found - {path})

    def _python(self, path: str, name: str) -> Iterable[str]:
        dots = len(name) - len(name.lstrip("."))
        if not dots:
            found = self._modules.get(name, ())
            # `from a.b import c` may name a module or something inside of one.
            return found or self._modules.get(name.rpartition(".")[0], ())
        folder = PurePosixPath(path)
        for _ in range(dots):
            folder = folder.parent
        inside = folder.joinpath(*name.lstrip(".").split(".")) if name.lstrip(".") else folder
        for base in (inside, inside.parent) if inside != folder else (inside,):
            found = [p for p in (f"{base}.py", f"{base}.pyi", str(base / "__init__.py")) if p in self._paths]
            if found:
                return found
        return ()

    def _script(self, path: str, name: str) -> Iterable[str]:
        if not name.startswith("."):
            return ()
        parts: list[str] = list(PurePosixPath(path).parts[:-1])
        for part in name.split("/"):
            if part == ".." and parts:
                parts.pop()
            elif part not in (".", "..", ""):
                parts.append(part)
        base = "/".join(parts)
        stem = base.removesuffix(".js")  # TypeScript writes the name of what it will be compiled to
        index = f"{base}/index" if base else "index"
        tried = (base, *(base + end for end in _SCRIPTS), *(stem + end for end in _SCRIPTS))
        return [p for p in (*tried, *(index + end for end in _SCRIPTS)) if p in self._paths][:1]

    def _go(self, name: str) -> Iterable[str]:
        parts = name.split("/")
        for start in range(len(parts)):
            if found := self._packages.get("/".join(parts[start:])):
                return found[:_MOST_OF_A_PACKAGE]
        return ()
