"""A page takes the lines that fit, and knows what it says without reading it again."""

from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.extraction.clean_text import add_handles
from cutbank.domain.summaries.extraction.facts import find_fact_words
from cutbank.domain.summaries.extraction.sections import SummaryLine, SummarySection
from cutbank.domain.summaries.extraction.summary_page import (
    MIN_WORDS,
    SAME_WORDS_SHARE,
    SummaryPage,
)

PIECES = [
    *("parser", "Parser", "config", "fails", "because", "tests", "a", "src/a.py", "snake_case"),
    *("--flag", "E501", "fooBar", "#12", "3.14.1", "`", "`x`", "\\n", "(", "<invoke>", "KeyError,"),
    *("[TOOL_CALL]", "User:", '"no"', "日本語です", "…", "x" * 90, "b_" * 40, "Errors:"),
]
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=40).map(" ".join)
LINES = st.builds(
    SummaryLine,
    section=st.sampled_from(SummarySection),
    text=TEXTS,
    handles=st.sets(st.integers(1, 40), max_size=8).map(Ranges.of),
    weight=st.sampled_from([0.1, 0.4, 0.95]),
    is_quote=st.booleans(),
)
ROOMS = st.integers(480, 12_000)


@given(
    st.lists(LINES, max_size=25),
    ROOMS,
    st.sampled_from(["", "<read-files>\na_b.py\n</read-files>"]),
)
def test_its_words_are_those_of_its_text(lines: list[SummaryLine], room: int, tags: str) -> None:
    page = SummaryPage(room)
    page.add_tags(tags)
    rest = page.add(lines[:10])
    length, before = page.line_count, page.collect_words()
    page.add([*rest, *lines[10:]])

    assert page.collect_words() == set(find_fact_words(page.text.replace("\\", " ")))
    assert page.collect_words() == before | page.collect_words(length) or not length


@given(st.lists(LINES, max_size=25), ROOMS)
def test_of_lines_that_say_the_same_it_takes_the_first(lines: list[SummaryLine], room: int) -> None:
    page = SummaryPage(100 * room)
    page.add(lines)

    taken = first_to_say(lines)
    assert page.line_count == len(taken)
    assert page.cites == Ranges(run for line in taken for run in line.handles.runs[-3:])


def first_to_say(lines: list[SummaryLine]) -> list[SummaryLine]:
    """The same by comparing each with each."""
    taken: list[SummaryLine] = []
    glances: list[str] = []
    for line in lines:
        if line.is_quote:
            is_said = line.section is not SummarySection.TURN and any(
                line.text in said for said in glances
            )
        else:
            is_said = any(says_the_same(line, other) for other in taken)
        if not is_said:
            taken.append(line)
            if line.is_quote and len(line.text) <= 200:
                glances.append(line.write_within(10_000))
    return taken


def says_the_same(one: SummaryLine, other: SummaryLine) -> bool:
    words, others = long_words(one), long_words(other)
    return len(words & others) >= max(MIN_WORDS, SAME_WORDS_SHARE * min(len(words), len(others)))


def long_words(line: SummaryLine) -> set[str]:
    return {word for word in line.text.casefold().split() if len(word) > 3}


@given(LINES, st.integers(-10, 400))
def test_a_line_that_was_weighed_is_written_in_the_same_room(line: SummaryLine, room: int) -> None:
    tail = add_handles("", line.handles)

    written = line.write_within(room)

    assert written.endswith(tail)
    assert line.with_weight(0.7).write_within(room) == written
