"""The parts of an extractive summary: words, lines read back, a page, what was read in a block."""

from weakref import WeakSet

from hypothesis import given
from hypothesis import strategies as st

from cutbank import Block, Ranges
from cutbank.domain.summaries.clean_text import add_handles
from cutbank.domain.summaries.earlier_summary import read_earlier_lines
from cutbank.domain.summaries.layout import SummaryLine, SummarySection
from cutbank.domain.summaries.memo import Memo
from cutbank.domain.summaries.page import MIN_WORDS, SAME_WORDS_SHARE, SummaryPage

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


@given(st.lists(LINES, max_size=25), ROOMS)
def test_of_lines_that_say_the_same_it_takes_the_first(lines: list[SummaryLine], room: int) -> None:
    page = SummaryPage(100 * room)
    page.add(lines)

    taken = first_to_say(lines)
    lines_said = [one for body in page.sections.values() for one in body.split("\n")]
    assert sum(one.startswith("- ") for one in lines_said) == len(taken)
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


HANDLES = st.sets(st.integers(1, 30), min_size=1, max_size=6).map(Ranges.of)


@given(st.lists(HANDLES, min_size=1, max_size=6), st.sets(st.integers(1, 30)).map(Ranges.of))
def test_a_line_keeps_its_handles_only_if_all_of_them_hold(
    handles: list[Ranges], covers: Ranges
) -> None:
    named = [Ranges(one.runs[-3:]) for one in handles]
    written = [add_handles(f"said {n}", one) for n, one in enumerate(handles)]

    done = {"Done": "\n".join(f"- {line}" for line in written)}
    lines = [*read_earlier_lines(done, None, covers, Memo())]

    assert [(line.text, line.handles) for line in lines] == [
        (line, Ranges()) if one - covers else (f"said {n}", one)
        for n, (line, one) in enumerate(zip(written, named, strict=True))
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=3)), max_size=40))
def test_a_block_is_read_once_and_never_taken_for_another(places: list[tuple[int, str]]) -> None:
    memo, reads = Memo(max_results=6), list[int]()

    def read(block: Block, most: int) -> str:
        reads.append(most)
        return block.text[:most]

    alive: dict[int, Block] = {}
    for place, text in places:
        alive[place] = block = Block.user(text)  # the one before it dies, and leaves its identity
        before = len(reads)

        assert [memo.read(read, block, most) for most in (1, 2, 1, 2)] == [text[:1], text[:2]] * 2
        assert len(reads) == before + 2


def test_what_was_read_is_bounded_and_stays_with_its_summarizer() -> None:
    blocks = [Block.user(str(number)) for number in range(9)]
    alive = WeakSet(blocks)
    memo = Memo(max_results=3)
    while blocks:
        memo.read(str, blocks.pop())

    assert len(alive) <= 3
    del memo
    assert not alive
