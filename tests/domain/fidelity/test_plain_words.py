"""Plain words: what is left of prose without facts and without what stands beside anything."""

import re

from fidelity_sessions import TEXTS
from hypothesis import example, given
from hypothesis import strategies as st

from cutbank.domain.fidelity.anchors import MAX_LINE_CHARS, find_anchors
from cutbank.domain.fidelity.stakes import (
    find_pairs_within,
)
from cutbank.domain.fidelity.words import STOP_WORDS, WordReader

ROOTS = ("/home/me/zone",)
PLAIN = WordReader(ROOTS)


def test_a_plain_word_has_four_letters_and_a_capital_at_most_at_its_front() -> None:
    found = {
        "The river Danube is FAST, fasT or deep: 1deep, deep2, früher": [
            ["river", "danube", "deep", "früher"]
        ],
        "there should have been some other file with code\nthat will": [],
        "river bank\n\nbank deep": [["river", "bank"], ["bank", "deep"]],
    }

    assert {text: list(PLAIN.iter_line_words(text)) for text in found} == found


WORDS = st.sampled_from(
    ["river", "Bank", "deep", "zone_of", "src/deep.py", "12", "rows", "load(river)", "the"]
)


LINES = st.lists(
    st.one_of(
        *(WORDS, TEXTS, st.sampled_from(["x" * MAX_LINE_CHARS, "12 ms", "(", ",", "\t"])),
        st.sampled_from(['"bank_of",Deep=river;', "f(load_rows)", "http://a.b/c,d;e"]),
    ),
    max_size=12,
).map(" ".join)


@example("x" * (MAX_LINE_CHARS - 3) + " load_rows")
@given(LINES)
def test_a_line_that_is_put_together_always_says_what_it_says_as_a_whole(text: str) -> None:
    facts = tuple(find_anchors(text, ROOTS))
    rest = list(text)
    for fact in facts:
        rest[fact.start : fact.end] = "_" * (fact.end - fact.start)
    words = [
        (found[0].lower(), found.start(), found.end())
        for found in re.finditer(r"\b[A-Za-z][a-z]{3,}\b", "".join(rest))
        if found[0].lower() not in STOP_WORDS
    ]

    line = WordReader(ROOTS).read_line(text)

    assert line.facts == facts
    assert list(line.spots) == words
    pieces = WordReader(ROOTS).split_pieces(text)
    assert [word for piece in pieces for word in piece.words] == [word for word, _, _ in words]
    if len(text) <= MAX_LINE_CHARS:
        assert [key for piece in pieces for key, *_ in piece.facts] == [fact.key for fact in facts]


def test_pairs_are_told_either_way_and_never_of_one_word() -> None:
    assert find_pairs_within(["deep", "bank", "deep", "deep", "river"], 1) == {
        ("bank", "deep"),
        ("deep", "river"),
    }
    assert ("bank", "river") in find_pairs_within(["deep", "bank", "deep", "deep", "river"], 3)
    assert ("bank", "river") not in find_pairs_within(["deep", "bank", "deep", "deep", "river"], 2)
