"""Who imports whom, by paths alone."""

from __future__ import annotations

import pytest

from domain.context.imports import ImportGraph

PATHS = ("src/shop/__init__.py", "src/shop/api.py", "src/shop/store/__init__.py", "src/shop/store/sql.py",
         "tests/test_api.py", "web/app.ts",
         "web/lib/index.ts", "web/lib/dates.js", "go/main.go", "go/pkg/store/a.go", "go/pkg/store/b.go",
         "go/pkg/store/a_test.go")  # fmt: skip


@pytest.mark.parametrize(
    ("path", "written", "expected"),
    [
        ("tests/test_api.py", "shop.api", ("src/shop/api.py",)),
        ("tests/test_api.py", "shop.api.handler", ("src/shop/api.py",)),
        ("src/shop/api.py", ".store", ("src/shop/store/__init__.py",)),
        ("src/shop/api.py", ".store.sql", ("src/shop/store/sql.py",)),
        ("src/shop/api.py", ".store.sql.connect", ("src/shop/store/sql.py",)),
        ("src/shop/api.py", ".store.connect", ("src/shop/store/__init__.py",)),
        ("src/shop/store/sql.py", "..api", ("src/shop/api.py",)),
        ("src/shop/store/sql.py", "..", ("src/shop/__init__.py",)),
        ("src/shop/api.py", "os.path", ()),
        ("web/app.ts", "./lib", ("web/lib/index.ts",)),
        ("web/app.ts", "./lib/dates", ("web/lib/dates.js",)),
        ("web/lib/dates.js", "../app.js", ("web/app.ts",)),
        ("web/app.ts", "react", ()),
        ("web/app.ts", "../../../../etc/passwd", ()),
        ("go/main.go", "example.org/x/pkg/store", ("go/pkg/store/a.go", "go/pkg/store/b.go")),
        ("go/main.go", "fmt", ()),
    ],
)
def test_an_import_leads_to_files_of_the_tree(path: str, written: str, expected: tuple[str, ...]) -> None:
    graph = ImportGraph(PATHS, {path: (written,)})
    assert graph.imported(path) == expected
    assert all(graph.importers(found) == (path,) for found in expected)


def test_a_file_does_not_import_itself() -> None:
    assert ImportGraph(PATHS, {"src/shop/api.py": ("shop.api",)}).imported("src/shop/api.py") == ()


@pytest.mark.parametrize("written", ["", ".", "....", "....x.y", "a..b", "/", "./", "\0"])
def test_what_is_no_import_leads_nowhere_and_does_not_fail(written: str) -> None:
    for path in PATHS:
        found = ImportGraph(PATHS, {path: (written,)}).imported(path)
        assert set(found) <= {"src/shop/__init__.py", "src/shop/store/__init__.py", "web/lib/index.ts"}
