"""The index in SQLite: safe beside itself, thrown away when damaged, never hung by hostile source."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.code import open_code, tables
from adapters.code.reading import read_source
from adapters.compliance.repository.code import FILES, CodeIndexCompliance, oid, sources, taught, tree
from domain.errors import InvalidName, Overtaken, ResourceShort
from domain.ports.code import CodeIndex, SourceFile
from tests.architecture.sources import ROOT

GENEROUS = 20.0  # seconds that no bounded reading takes, on whatever machine; an unbounded one takes minutes


@pytest.fixture
def code(tmp_path: Path) -> CodeIndex:
    return open_code(tmp_path)


class TestSqlite(CodeIndexCompliance):
    """The product's index."""


async def test_a_change_of_three_files_reads_three(code: CodeIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counting(path: str, content: bytes) -> object:
        read.append(path)
        return read_source(path, content)

    monkeypatch.setattr("adapters.code.sqlite_index.read_source", counting)
    files = {f"m{n}.py": f"def f{n}(): ...\n".encode() for n in range(300)}
    assert await taught(code, files) == len(read) == 300
    read.clear()
    for n in (3, 140, 299):
        files[f"m{n}.py"] = f"def g{n}(): ...\n".encode()
    assert await taught(code, files) == 3
    assert sorted(read) == ["m140.py", "m299.py", "m3.py"]
    defined = (await code.mentions("shop", tree(files), ["f3", "g3"])).defined
    assert defined == {"g3": ("m3.py",)}, "what the tree no longer holds is not found in it"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5_000])


def overwrite(path: Path) -> None:
    path.write_bytes(b"not a database " * 1_000)


def scramble(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4_096:] = b"\xa5" * (len(content) - 4_096)
    path.write_bytes(content)


def age(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {tables.VERSION + 1}")
    connection.close()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def drop_table(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE postings")
    connection.close()


@pytest.mark.parametrize("harm", [cut, overwrite, scramble, age, empty])
async def test_a_damaged_or_foreign_index_is_thrown_away_and_made_again(
    code: CodeIndex, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    await taught(code, FILES)
    before = await code.matches("shop", tree(FILES), ["parcel"])
    harm(tmp_path / "index" / "shop.db")
    assert len(await code.missing("shop", tree(FILES))) == len(FILES), "nothing of it is believed"
    await taught(code, FILES)
    assert await code.matches("shop", tree(FILES), ["parcel"]) == before


async def test_damage_that_shows_late_is_told_so_that_the_asker_teaches_again(code: CodeIndex, tmp_path: Path) -> None:
    await taught(code, FILES)
    drop_table(tmp_path / "index" / "shop.db")
    assert await code.missing("shop", tree(FILES)) == (), "what is damaged is not looked at"
    with pytest.raises(Overtaken, match="taught again"):
        await code.matches("shop", tree(FILES), ["parcel"])
    assert await taught(code, FILES) == len(FILES)
    assert (await code.matches("shop", tree(FILES), ["parcel"])).counts["parcel"]


async def test_a_half_written_batch_is_not_seen(code: CodeIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.code.sqlite_index._packed", lambda _: iter([("word", None, "too many")]))
    with pytest.raises(Exception, match=r"binding|unpack"):
        await taught(code, FILES)
    monkeypatch.undo()
    assert await taught(code, FILES) == len(FILES)


async def test_a_project_cannot_name_another_folder(code: CodeIndex) -> None:
    with pytest.raises(InvalidName):
        await code.missing("../other", tree(FILES))


async def test_a_folder_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("a file")
    with pytest.raises(ResourceShort, match="code index of project shop"):
        await open_code(tmp_path).missing("shop", tree(FILES))


async def test_many_at_once_learn_and_ask_and_agree(code: CodeIndex) -> None:
    files = {f"m{n}.py": f"def price{n}(): ...\n".encode() for n in range(60)}
    wanted = tree(files)
    assert len(await code.missing("shop", wanted)) == 60

    async def one(start: int) -> None:
        await code.learn("shop", sources(files, [*wanted[start:], *wanted[:start]]))
        assert (await code.matches("shop", wanted, ["price"])).files == 60

    await asyncio.gather(*(one(start) for start in (0, 10, 30, 50)))
    assert (await code.matches("shop", wanted, ["price"])).passages == 120


PROCESS = """
import asyncio, sys
from pathlib import Path
from adapters.code import open_code
from adapters.compliance.repository.code import taught
files = {f"m{n}.py": f"def price{n}(): ...\\n".encode() for n in range(400)}
asyncio.run(taught(open_code(Path(sys.argv[1])), files))
"""


async def test_processes_share_one_index_also_when_they_make_it_at_the_same_time(
    code: CodeIndex, tmp_path: Path
) -> None:
    argv = [sys.executable, "-c", PROCESS, str(tmp_path)]
    started = [await asyncio.create_subprocess_exec(*argv, cwd=ROOT, stderr=asyncio.subprocess.PIPE) for _ in range(3)]
    for process in started:
        _, said = await process.communicate()
        assert process.returncode == 0, said.decode()
    files = {f"m{n}.py": f"def price{n}(): ...\n".encode() for n in range(400)}
    assert await code.missing("shop", tree(files)) == ()
    assert (await code.matches("shop", tree(files), ["price"])).passages == 800


HOSTILE = {
    "deep brackets": b"(" * 300_000,
    "deep lists": b"x=[" * 100_000,
    "no source at all": b"- \n" * 170_000,
    "one line": b"a" * 5_000_000,
    "deep blocks": b"".join(b" " * depth + b"if x:\n" for depth in range(700)),
    "many strings": b"'''\n" * 15_000,
    "many classes": b"class A:\n" * 8_000,
    "long chains": b"a.b\n.c\n" * 10_000,
    "half characters": b"\xf0\x9f" * 1_000 + b"def f(): ...\n" * 1_000,
    "nothing": b"",
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_source_is_read_in_bounded_time_and_never_fails(name: str) -> None:
    began = time.monotonic()
    for path in ("x.py", "x.js", "x.ts", "x.go"):
        reading = read_source(path, HOSTILE[name])
        assert len(reading.passages) == len(reading.facts.symbols) + 1
    assert time.monotonic() - began < GENEROUS


@pytest.mark.parametrize(
    ("path", "source", "symbols", "calls", "imports"),
    [
        (
            "a.ts",
            "import { k } from '../m';\ninterface Shape { a: string }\n"
            "export abstract class Box<T> { run(x: Lid): void {} }\n",
            ["type Shape", "class Box", "method run"],
            {"k", "Lid"},
            ("../m",),
        ),
        (
            "a.go",
            'package p\nimport ("fmt"; q "example.org/x/pkg")\n'
            "type T struct { a Other }\nfunc (t *T) Run() { fmt.Println(q.X()) }\n",
            ["type T", "function Run"],
            {"Other", "Println", "X"},
            ("fmt", "example.org/x/pkg"),
        ),
        (
            "a.js",
            "const q = require('./q');\nmodule.exports = function main() { return new Foo(q.go()); };\n"
            "exports.other = () => 1;\n",
            ["function exports", "function other"],
            {"require", "Foo", "go"},
            ("./q",),
        ),
        (
            "a.py",
            "from . import z\nimport os.path as p\n@deco\nasync def f():\n    class Inner(Base): ...\n",
            ["function f", "class Inner"],
            {"z", "deco", "Base"},
            ("os.path", ".z"),
        ),
    ],
)
def test_each_language_has_its_symbols_calls_and_imports(
    path: str, source: str, symbols: list[str], calls: set[str], imports: tuple[str, ...]
) -> None:
    facts = read_source(path, source.encode()).facts
    assert [f"{s.kind} {s.name}" for s in facts.symbols] == symbols
    assert calls <= set(facts.calls)
    assert facts.imports == imports


def test_words_of_other_languages_count_though_nothing_else_is_known() -> None:
    reading = read_source("a.rb", b"def weigh(parcel)\nend\n")
    assert reading.facts.symbols == ()
    assert reading.passages[0]["parcel"] == 1


async def test_a_name_that_git_has_for_a_content_is_what_counts(code: CodeIndex) -> None:
    content = b"def f(): ...\n"
    await code.missing("shop", ())
    await code.learn("shop", [SourceFile(path="a.py", oid=oid(content), content=content)])
    assert await code.missing("shop", tree({"b/other.py": content})) == ()
