"""What a path says of its file: language, test, prose, or nothing that anybody wrote by hand."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

MOST_BYTES = 512_000
"""A larger file is listed, never indexed."""

Kind = Literal["source", "test", "prose", "other"]

LANGUAGES = {
    ".py": "python", ".pyi": "python", ".js": "javascript", ".jsx": "javascript", ".mjs": "javascript",
    ".cjs": "javascript", ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "tsx", ".go": "go",
}  # fmt: skip
_OTHER_SOURCE = frozenset(
    (".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".java", ".kt", ".rb", ".php", ".cs", ".swift", ".scala", ".sh", ".sql",
     ".html", ".css", ".scss", ".vue", ".svelte", ".ex", ".exs", ".erl", ".lua", ".pl", ".r", ".jl", ".pyx")
)  # fmt: skip
_PROSE = frozenset((".md", ".rst", ".txt", ".adoc", ".org", ".tex"))
_TEST_FOLDERS = frozenset(("test", "tests", "testing", "__tests__", "spec", "specs"))
_PROSE_FOLDERS = frozenset(("doc", "docs", "changelog.d", "examples", "example"))
_FOREIGN = frozenset(
    ("node_modules", "bower_components", "vendor", "vendored", "_vendor", "third_party", "site-packages", ".venv",
     "venv", "__pycache__", ".yarn", "dist", ".git", ".tox", ".eggs")
)  # fmt: skip
_FOREIGN_NAMES = frozenset(
    ("package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "uv.lock", "cargo.lock", "go.sum",
     "composer.lock", "gemfile.lock", "pipfile.lock")
)  # fmt: skip
_FOREIGN_ENDS = (".min.js", ".min.css", ".map", "_pb2.py", "_pb2_grpc.py", ".pb.go", ".egg-info", ".bundle.js")


def language(path: str) -> str:
    """The language whose grammar reads the file, "" for none."""
    return LANGUAGES.get(PurePosixPath(path).suffix.lower(), "")


def kind(path: str) -> Kind:
    """What the file is for, as far as its path tells."""
    pure = PurePosixPath(path)
    folders, suffix = {part.lower() for part in pure.parts[:-1]}, pure.suffix.lower()
    if suffix in _PROSE or (folders & _PROSE_FOLDERS and suffix not in LANGUAGES):
        return "prose"
    if folders & _TEST_FOLDERS or tested_stem(path) or pure.stem == "conftest":
        return "test"
    if folders & _PROSE_FOLDERS:
        return "prose"
    return "source" if suffix in LANGUAGES or suffix in _OTHER_SOURCE else "other"


def left_aside(path: str, size: int) -> str:
    """Why the file is only listed: "vendored or generated", "too large", or "" when it is to be read."""
    pure = PurePosixPath(path.lower())
    if set(pure.parts[:-1]) & _FOREIGN or pure.name in _FOREIGN_NAMES or pure.name.endswith(_FOREIGN_ENDS):
        return "vendored or generated"
    if any(part.endswith(".egg-info") for part in pure.parts[:-1]):
        return "vendored or generated"
    return "too large" if size > MOST_BYTES else ""


def tested_stem(path: str) -> str:
    """``tests/test_api.py``, ``api_test.go`` and ``api.test.js`` all belong to ``api``; "" for what is no test."""
    stem = PurePosixPath(path).stem
    for mark in (".test", ".spec", "_test"):
        if stem.endswith(mark):
            return stem.removesuffix(mark)
    return stem.removeprefix("test_") if stem.startswith("test_") else ""
