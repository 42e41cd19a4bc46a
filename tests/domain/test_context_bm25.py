"""BM25 is the formula, over exactly the documents of one tree."""

from __future__ import annotations

from collections import Counter
from math import isclose, log

from hypothesis import given
from hypothesis import strategies as st

from domain.context.bm25 import K1, B, Corpus, scores

WORDS = st.sampled_from(["order", "price", "cart", "user", "login"])
DOCUMENTS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3), st.lists(WORDS, min_size=1, max_size=12), max_size=8
)
QUERY = st.dictionaries(WORDS, st.sampled_from([1.0, 1.5, 2.0]), max_size=4)


def corpus(documents: dict[str, list[str]]) -> Corpus[str]:
    counted = {name: Counter(text) for name, text in documents.items()}
    vocabulary = {word for each in counted.values() for word in each}
    return Corpus(
        documents=len(documents),
        average=sum(map(len, documents.values())) / max(1, len(documents)),
        lengths={name: len(text) for name, text in documents.items()},
        counts={w: {name: each[w] for name, each in counted.items() if w in each} for w in vocabulary},
    )


def naive(query: dict[str, float], documents: dict[str, list[str]]) -> dict[str, float]:
    """Straight from the paper, document by document."""
    average = sum(map(len, documents.values())) / max(1, len(documents))
    found = {}
    for name, text in documents.items():
        total = 0.0
        for word, weight in query.items():
            holding = sum(word in other for other in documents.values())
            count = text.count(word)
            idf = log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
            total += weight * idf * count * (K1 + 1) / (count + K1 * (1 - B + B * len(text) / average))
        if any(word in text for word in query):
            found[name] = total
    return found


@given(QUERY, DOCUMENTS)
def test_it_is_what_the_formula_says(query: dict[str, float], documents: dict[str, list[str]]) -> None:
    ours, expected = scores(query, corpus(documents)), naive(query, documents)
    assert ours.keys() == expected.keys()
    assert all(isclose(ours[name], expected[name], rel_tol=1e-9) for name in expected)


@given(QUERY, DOCUMENTS)
def test_what_is_found_is_above_zero_and_the_order_of_documents_does_not_matter(
    query: dict[str, float], documents: dict[str, list[str]]
) -> None:
    backwards = dict(reversed(documents.items()))
    assert scores(query, corpus(documents)) == scores(query, corpus(backwards))
    assert all(score > 0 for score in scores(query, corpus(documents)).values())


@given(DOCUMENTS)
def test_one_more_of_a_word_never_makes_a_document_of_the_same_length_worse(documents: dict[str, list[str]]) -> None:
    documents |= {"x": ["order", "cart", "cart"], "y": ["order", "order", "cart"]}
    found = scores({"order": 1.0}, corpus(documents))
    assert found["y"] > found["x"]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    documents = {"a": ["price", "cart"], "b": ["cart", "cart"], "c": ["cart", "user"], "d": ["cart", "login"]}
    found = scores({"price": 1.0, "user": 0.5, "cart": 1.0}, corpus(documents))
    assert found["a"] == max(found.values())


def test_nothing_is_found_in_nothing() -> None:
    assert scores({"order": 1.0}, corpus({})) == {}
