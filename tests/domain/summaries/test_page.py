"""A page takes the lines that fit, and knows what it says without reading it again."""

from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.extraction.clean_text import shortened, shortened_inside, with_handles
from cutbank.domain.summaries.extraction.facts import words_of
from cutbank.domain.summaries.extraction.sections import Line, Section
from cutbank.domain.summaries.extraction.summary_page import FEWEST, SAME, Page
from cutbank.domain.summaries.quotes import quote_in, quoted
from cutbank.domain.summaries.tool_markup import harmless

PIECES = [
    *("parser", "Parser", "config", "fails", "because", "tests", "a", "src/a.py", "snake_case"),
    *(
        "--flag",
        "E501",
        "fooBar",
        "#12",
        "3.14.1",
        "`",
        "`x`",
        "\\n",
        "(",
        "<invoke>",
        "[TOOL_CALL]",
    ),
    *("User:", '"no"', "日本語です", "…", "x" * 90, "b_" * 40, "Errors:", "KeyError,"),
]
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=40).map(" ".join)
LINES = st.builds(
    Line,
    section=st.sampled_from(Section),
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
def test_its_words_are_those_of_its_text(lines: list[Line], room: int, tags: str) -> None:
    page = Page(room)
    page.add_tags(tags)
    rest = page.add(lines[:10])
    length, before = page.length, page.words()
    page.add([*rest, *lines[10:]])

    assert page.words() == set(words_of(page.text.replace("\\", " ")))
    assert page.words() == before | page.words(length) or not length


@given(st.lists(LINES, max_size=25), ROOMS)
def test_of_lines_that_say_the_same_it_takes_the_first(lines: list[Line], room: int) -> None:
    page = Page(100 * room)
    page.add(lines)

    taken = first_to_say(lines)
    assert page.length == len(taken)
    assert page.cites == Ranges(run for line in taken for run in line.handles.runs[-3:])


def first_to_say(lines: list[Line]) -> list[Line]:
    """The same by comparing each with each."""
    taken: list[Line] = []
    glances: list[str] = []
    for line in lines:
        if line.is_quote:
            is_said = line.section is not Section.TURN and any(
                line.text in said for said in glances
            )
        else:
            is_said = any(says_the_same(line, other) for other in taken)
        if not is_said:
            taken.append(line)
            if line.is_quote and len(line.text) <= 200:
                glances.append(line.within(10_000))
    return taken


def says_the_same(one: Line, other: Line) -> bool:
    words, others = long_words(one), long_words(other)
    return len(words & others) >= max(FEWEST, SAME * min(len(words), len(others)))


def long_words(line: Line) -> set[str]:
    return {word for word in line.text.casefold().split() if len(word) > 3}


@given(LINES, st.integers(-10, 400))
def test_a_line_is_written_in_the_room_it_is_given(line: Line, room: int) -> None:
    tail = with_handles("", line.handles)

    assert line.within(room) == written(line, room - len(tail)) + tail
    assert line.weighing(0.7).within(room) == line.within(room)


def written(line: Line, room: int) -> str:
    """The same, with nothing known of the line before."""
    if line.is_quote:
        return quoted(shortened_inside(line.text, room - len(quoted(""))))
    told = harmless(line.text)
    told = told if quote_in(told) is None else f"Log: {told}"
    said = shortened(told, room)
    return shortened(told, room - 1) + "`" if said.count("`") % 2 else said
