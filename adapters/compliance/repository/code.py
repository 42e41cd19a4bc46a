"""What every CodeIndex has to do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import pytest

from domain.context.symbols import FileFacts
from domain.ports.code import CodeIndex, SourceFile
from domain.ports.workspace import TreeFile

FILES = {
    "shop/cart.py": b'from .price import total_of as total\n\nclass Cart:\n    """A basket of parcels."""\n\n'
    b"    def weigh(self):\n        return total(self)\n",
    "shop/price.py": b"def total_of(cart):\n    return cart.weigh()\n",
    "web/cart.js": b"import { total } from './price.js';\nexport function weigh(cart) { return total(cart); }\n",
    "notes.md": b"Parcels have a weight.\n",
}


def oid(content: bytes) -> str:
    """The name that git gives a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def tree(files: Mapping[str, bytes]) -> tuple[TreeFile, ...]:
    """``files`` as a commit's."""
    return tuple(TreeFile(path=p, size=len(c), kind="file", oid=oid(c)) for p, c in sorted(files.items()))


def sources(files: Mapping[str, bytes], wanted: Sequence[TreeFile]) -> list[SourceFile]:
    """The contents of ``wanted``."""
    return [SourceFile(path=f.path, oid=f.oid, content=files[f.path]) for f in wanted]


async def taught(code: CodeIndex, files: Mapping[str, bytes], *, project: str = "shop") -> int:
    """Bring the index up to ``files``; how many had to be read."""
    return await code.learn(project, sources(files, await code.missing(project, tree(files))))


class CodeIndexCompliance:
    """A subclass gives the fixture ``code``: an index that knows nothing yet."""

    async def test_a_content_is_read_once_whatever_its_path_and_its_tree(self, code: CodeIndex) -> None:
        assert await taught(code, FILES) == 4
        assert await taught(code, FILES) == 0
        moved = {**FILES, "shop/basket.py": FILES["shop/cart.py"], "shop/price.py": b"def total_of(c): ...\n"}
        assert await taught(code, moved) == 1
        assert await code.learn("shop", sources(FILES, tree(FILES))) == 0

    async def test_the_same_bytes_are_other_symbols_in_another_language(self, code: CodeIndex) -> None:
        await taught(code, {"a.py": b"def f(): ...\n"})
        assert await taught(code, {"a.txt": b"def f(): ...\n"}) == 1

    async def test_symbols_calls_and_imports_are_found(self, code: CodeIndex) -> None:
        await taught(code, FILES)
        facts = await code.facts("shop", tree(FILES))
        cart = facts["shop/cart.py"]
        assert [(s.name, s.kind, s.line, s.end, s.depth) for s in cart.symbols] == [
            ("Cart", "class", 3, 7, 0),
            ("weigh", "method", 6, 7, 1),
        ]
        assert cart.imports == (".price.total_of",)
        assert {"total_of", "total"} <= set(cart.calls)
        assert facts["web/cart.js"].imports == ("./price.js",)
        assert facts["notes.md"] == FileFacts()

    async def test_words_are_counted_by_passage(self, code: CodeIndex) -> None:
        await taught(code, FILES)
        found = await code.matches("shop", tree(FILES), ["parcel", "weigh", "nowhere"])
        assert found.counts["parcel"] == {"notes.md": {0: 1}, "shop/cart.py": {1: 1}}
        assert found.counts["weigh"]["shop/cart.py"] == {2: 1}
        assert found.counts["nowhere"] == {}
        assert found.files == 4
        assert len(found.lengths["shop/cart.py"]) == 3

    async def test_only_the_asked_tree_counts_whatever_else_is_known(self, code: CodeIndex) -> None:
        alone = {"a.py": b"def cart(): ...\n", "b.py": b"def stock(): ...\n"}
        await taught(code, alone, project="other")
        await taught(code, FILES)
        await taught(code, alone)
        asked = ["cart", "stock", "parcel"]
        found = await code.matches("shop", tree(alone), asked)
        assert found == await code.matches("other", tree(alone), asked)
        assert found.counts == {"cart": {"a.py": {1: 1}}, "parcel": {}, "stock": {"b.py": {1: 1}}}
        assert (await code.mentions("shop", tree(alone), ["weigh", "cart"])).defined == {"cart": ("a.py",)}

    async def test_names_lead_to_who_defines_and_who_calls(self, code: CodeIndex) -> None:
        await taught(code, FILES)
        found = await code.mentions("shop", tree(FILES), ["total_of", "weigh"])
        assert found.defined == {"total_of": ("shop/price.py",), "weigh": ("shop/cart.py", "web/cart.js")}
        assert found.called == {"total_of": ("shop/cart.py",), "weigh": ("shop/price.py",)}

    async def test_the_same_content_at_two_paths_is_two_files(self, code: CodeIndex) -> None:
        twins = {"a.py": b"def cart(): ...\n", "b.py": b"def cart(): ...\n"}
        assert await taught(code, twins) == 1
        found = await code.matches("shop", tree(twins), ["cart"])
        assert (found.files, sorted(found.counts["cart"])) == (2, ["a.py", "b.py"])
        assert (await code.mentions("shop", tree(twins), ["cart"])).defined == {"cart": ("a.py", "b.py")}

    @pytest.mark.parametrize(
        "path", ["node_modules/x/index.js", "vendor/x.go", "app.min.js", "package-lock.json", "x.egg-info/SOURCES.txt"]
    )
    async def test_what_nobody_wrote_by_hand_is_not_asked_for(self, code: CodeIndex, path: str) -> None:
        assert await code.missing("shop", tree({path: b"x"})) == ()

    async def test_links_large_files_and_files_without_a_name_are_not_asked_for(self, code: CodeIndex) -> None:
        odd = (
            TreeFile(path="link.py", size=3, kind="symlink", oid="1" * 40),
            TreeFile(path="module", size=0, kind="submodule", oid="2" * 40),
            TreeFile(path="huge.py", size=600_000, kind="file", oid="3" * 40),
            TreeFile(path="nameless.py", size=3, kind="file"),
        )
        assert await code.missing("shop", odd) == ()
        assert (await code.matches("shop", odd, ["x"])).files == 0

    async def test_content_that_is_no_text_is_known_as_such_and_never_read_again(self, code: CodeIndex) -> None:
        odd = {"a.py": b"\0\1\2", "b.js": b"x" * 6_000, "c.txt": bytes(range(128, 256)) * 9}
        assert await taught(code, odd) == 3
        assert await code.missing("shop", tree(odd)) == ()
        facts = await code.facts("shop", tree(odd))
        assert {p: f.skipped for p, f in facts.items()} == {"a.py": "binary", "b.js": "minified", "c.txt": "binary"}

    async def test_nothing_is_known_of_an_empty_tree(self, code: CodeIndex) -> None:
        assert (await code.missing("shop", ()), await code.imports("shop", ())) == ((), {})
        assert (await code.matches("shop", (), ["x"])).passages == 0
