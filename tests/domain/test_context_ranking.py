"""What speaks for a file: words, names, and its place among the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from domain.context.imports import ImportGraph
from domain.context.ranking import Evidence, Ranked, query_of, rank
from domain.context.symbols import FileFacts, Matches, Mentions, Symbol
from domain.context.words import words


def symbol(name: str) -> Symbol:
    return Symbol(name=name, kind="function", line=1, end=2, signature=f"def {name}():")


def matches(files: Mapping[str, list[str]], query: Mapping[str, float]) -> Matches:
    """``files`` maps a path to the texts of its passages."""
    counted = {path: [Counter(words(text)) for text in texts] for path, texts in files.items()}
    counts: dict[str, dict[str, dict[int, int]]] = {word: {} for word in query}
    for word, held in counts.items():
        for path, passages in counted.items():
            if inside := {n: passage[word] for n, passage in enumerate(passages) if passage[word]}:
                held[path] = inside
    return Matches(
        files=len(files),
        passages=sum(map(len, files.values())),
        length=sum(each.total() for passages in counted.values() for each in passages),
        lengths={path: tuple(each.total() for each in passages) for path, passages in counted.items()},
        counts=counts,
    )  # fmt: skip


def ranked(spec: str, files: Mapping[str, list[str]], **more: object) -> tuple[Ranked, ...]:
    query = query_of(spec)
    return rank(Evidence(query=query, matches=matches(files, query), paths=tuple(files), **more))  # type: ignore[arg-type]


def test_a_function_that_is_about_it_beats_a_long_file_that_says_the_words_all_over() -> None:
    noise = "cart order user page view list item total price state event " * 8
    files = {
        "long.py": [f"{noise} parcel", f"{noise} weight", f"{noise} rounds"],
        "near.py": [noise, "the weight of a parcel rounds up", noise],
        "far.py": [noise],
    }
    assert ranked("A parcel's weight is rounded down.", files)[0].path == "near.py"


def test_source_comes_before_prose_that_says_the_same() -> None:
    text = ["a parcel weighs what its weight says"]
    found = ranked("the weight of a parcel", {"docs/parcels.md": text, "CHANGES.rst": text, "ship/core.py": text})
    assert found[0].path == "ship/core.py"


def test_a_file_that_speaks_for_nothing_is_not_ranked() -> None:
    assert [r.path for r in ranked("parcel", {"a.py": ["parcel"], "b.py": ["order"]})] == ["a.py"]


def test_the_words_of_a_path_count() -> None:
    files = {"ship/parcel.py": ["value"], "ship/order.py": ["value parcel"], "x.py": ["nothing else"]}
    assert {r.path for r in ranked("parcel", files)} == {"ship/parcel.py", "ship/order.py"}


def test_neighbours_of_a_planned_file_are_found_without_a_word_in_common() -> None:
    files = {
        path: ["nothing"]
        for path in ("app/api.py", "app/db.py", "app/cli.py", "tests/test_api.py", "app/far.py", "app/web.py")
    }
    anchors = {"app/api.py": FileFacts(symbols=(symbol("handle"),), calls=("query",))}
    mentions = Mentions(
        defined={"handle": ("app/api.py",), "query": ("app/db.py",)},
        called={"handle": ("app/cli.py", "tests/test_api.py")},
    )
    graph = ImportGraph(files, {"app/web.py": (".api",), "app/api.py": (".db",)})
    found = ranked("spec", files, anchors=anchors, mentions=mentions, graph=graph)
    assert {r.path: r.why for r in found} == {
        "app/db.py": "callee", "app/cli.py": "caller", "tests/test_api.py": "test", "app/web.py": "importer",
    }  # fmt: skip


def test_a_name_that_everybody_defines_links_nobody() -> None:
    files = {f"m{n}.py": ["x"] for n in range(12)}
    anchors = {"m0.py": FileFacts(calls=("run",))}
    assert ranked("spec", files, anchors=anchors, mentions=Mentions(defined={"run": tuple(files)}, called={})) == ()


def test_a_symbol_that_the_spec_names_leads_to_its_file() -> None:
    files = {"a.py": ["x"], "b.py": ["y"]}
    mentions = Mentions(defined={"parse_url": ("b.py",)}, called={})
    assert [(r.path, r.why) for r in ranked("q", files, mentions=mentions, names=("parse_url",))] == [
        ("b.py", "symbol")
    ]


@given(
    st.dictionaries(
        st.sampled_from([f"{n}.py" for n in range(9)]), st.lists(st.text("ab cd", max_size=20), min_size=1, max_size=3)
    )
)
def test_the_order_in_which_files_come_changes_nothing(files: dict[str, list[str]]) -> None:
    backwards = dict(reversed(files.items()))
    assert ranked("aa bb cd ab", files) == ranked("aa bb cd ab", backwards)
