"""Plain words: what is left of prose without facts and without what stands beside anything."""

import re

from fidelity_sessions import TEXTS
from hypothesis import example, given
from hypothesis import strategies as st

from cutbank.domain.fidelity.anchors import LINE, anchors_of
from cutbank.domain.fidelity.plain_words import STOPPED, PlainWords
from cutbank.domain.fidelity.summary_content import pairs_within

ROOTS = ("/home/me/zone",)
PLAIN = PlainWords(ROOTS)


def lines(text: str) -> list[list[str]]:
    return list(PLAIN.lines(text))


def test_a_plain_word_has_four_letters_and_a_capital_at_most_at_its_front() -> None:
    assert lines("The river Danube is FAST, fasT or deep: 1deep, deep2, früher") == [
        ["river", "danube", "deep", "früher"]
    ]


def test_words_of_facts_are_no_plain_words() -> None:
    text = "Look into src/zone/river.py, call load_rows(danube) after 12 rows and --quiet zoneOf"

    assert lines(text) == [["look", "call", "danube"]]


def test_what_touches_a_fact_is_no_plain_word() -> None:
    assert lines("load_rowsdeep 51%river bank-deep river") == [["bank", "deep", "river"]]


def test_words_of_grammar_are_left_out() -> None:
    assert lines("there should have been some other file with code\nthat will") == []


def test_each_line_is_told_apart_and_empty_ones_are_not_told() -> None:
    assert lines("river bank\n\nbank deep") == [["river", "bank"], ["bank", "deep"]]


def test_a_line_tells_where_its_words_and_its_facts_stand() -> None:
    line = PLAIN.line("River at src/zone.py runs")

    assert [(spot.word, spot.start, spot.end) for spot in line.spots] == [
        ("river", 0, 5),
        ("runs", 21, 25),
    ]
    assert [(fact.key, fact.start, fact.end) for fact in line.facts] == [("src/zone.py", 9, 20)]


WORDS = st.sampled_from(
    [
        "river",
        "Bank",
        "deep",
        "zone_of",
        "src/deep.py",
        "12",
        "rows",
        "load(river)",
        "the",
        "--deep",
    ]
)


LINES = st.lists(
    st.one_of(WORDS, TEXTS, st.sampled_from(["x" * LINE, "12 ms", "(", ",", "\t"])), max_size=12
).map(" ".join)


@example("x" * (LINE - 3) + " load_rows")
@given(LINES)
def test_a_line_that_is_put_together_always_says_what_it_says_as_a_whole(text: str) -> None:
    facts = tuple(anchors_of(text, ROOTS))
    rest = list(text)
    for fact in facts:
        rest[fact.start : fact.end] = "_" * (fact.end - fact.start)
    words = [
        (found[0].lower(), found.start(), found.end())
        for found in re.finditer(r"\b[A-Za-z][a-z]{3,}\b", "".join(rest))
        if found[0].lower() not in STOPPED
    ]

    line = PlainWords(ROOTS).line(text)

    assert line.facts == facts
    assert list(line.spots) == words


@given(st.lists(st.one_of(WORDS, TEXTS), max_size=12).map(" ".join))
def test_read_word_by_word_a_line_always_says_what_it_says_as_a_whole(text: str) -> None:
    whole = [spot.word for spot in PLAIN.line(text).spots]

    assert [word for line in PLAIN.lines(text) for word in line] == whole


@given(st.lists(st.one_of(WORDS, TEXTS), max_size=12).map(" ".join))
def test_no_plain_word_ever_stands_in_a_fact(text: str) -> None:
    inside = {at for fact in anchors_of(text) for at in range(fact.start, fact.end)}

    for spot in PLAIN.line(text).spots:
        assert inside.isdisjoint(range(spot.start, spot.end))
        assert text[spot.start : spot.end].lower() == spot.word


def test_pairs_are_told_either_way_and_never_of_one_word() -> None:
    assert pairs_within(["deep", "bank", "deep", "deep", "river"], 1) == {
        ("bank", "deep"),
        ("deep", "river"),
    }
    assert ("bank", "river") in pairs_within(["deep", "bank", "deep", "deep", "river"], 3)
    assert ("bank", "river") not in pairs_within(["deep", "bank", "deep", "deep", "river"], 2)
