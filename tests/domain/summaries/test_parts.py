"""The parts of an extractive summary: words, lines read back, a page, what was read in a block."""

from weakref import WeakSet

from hypothesis import given
from hypothesis import strategies as st

from cutbank import Block, Ranges
from cutbank.domain.summaries.clean_text import add_handles, shorten_inside, shorten_line
from cutbank.domain.summaries.earlier_summary import read_earlier_lines
from cutbank.domain.summaries.layout import SummaryLine, SummarySection
from cutbank.domain.summaries.page import SummaryPage
from cutbank.domain.summaries.statements import BlockReader

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
def test_a_page_has_each_line_once_within_its_room(lines: list[SummaryLine], room: int) -> None:
    page = SummaryPage(room)
    for _ in range(2):
        page.add_shares(lines, dict.fromkeys(SummarySection, 0.2))

    assert len(page.text) <= room - page.left
    said = [one for body in page.sections.values() for one in body.split("\n") if one[:2] == "- "]
    assert len(said) <= len({(line.section, line.text) for line in lines})
    wide = SummaryPage(100 * room)
    wide.add_shares(lines, dict.fromkeys(SummarySection, 1.0))
    for line in first_of_each(lines):
        assert line.is_quote or not Ranges(line.handles.runs[-3:]) - wide.cites


def first_of_each(lines: list[SummaryLine]) -> list[SummaryLine]:
    return [*{(line.section, line.text): line for line in reversed(lines)}.values()]


@given(LINES, st.integers(-10, 400))
def test_a_line_keeps_its_handles_in_any_room(line: SummaryLine, room: int) -> None:
    tail = add_handles("", line.handles)

    written = line.write_within(room)

    assert written.endswith(tail)


def test_a_shortened_line_has_whole_words_only_where_words_are_apart() -> None:
    path = "src/" + "deep/" * 20 + "file.py"
    rows = {
        ("look at " + path, 60): "look at…",
        (path, 60): "…",
        ("请修复解析器" * 20, 10): "请修复解析器请修复…",
        ("fix the parser", 8): "fix the…",
    }

    assert {key: shorten_line(*key) for key in rows} == rows
    for text in (f"{path} is wrong. Please fix {path} now.", "请修复解析器" * 30):
        assert all(len(shorten_inside(text, room)) <= room for room in range(40, 180))


HANDLES = st.sets(st.integers(1, 30), min_size=1, max_size=6).map(Ranges.of)


@given(st.lists(HANDLES, min_size=1, max_size=6), st.sets(st.integers(1, 30)).map(Ranges.of))
def test_a_line_keeps_its_handles_only_if_all_of_them_hold(
    handles: list[Ranges], covers: Ranges
) -> None:
    named = [Ranges(one.runs[-3:]) for one in handles]
    written = [add_handles(f"said {n}", one) for n, one in enumerate(handles)]

    done = {"Done": "\n".join(f"- {line}" for line in written)}
    lines = [*read_earlier_lines(done, None, covers)]

    assert [(line.text, line.handles) for line in lines] == [
        (line, Ranges()) if one - covers else (f"said {n}", one)
        for n, (line, one) in enumerate(zip(written, named, strict=True))
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=3)), max_size=40))
def test_a_block_is_read_once_and_never_taken_for_another(places: list[tuple[int, str]]) -> None:
    reader, reads = BlockReader(max_results=6), list[int]()

    def read(block: Block, most: int) -> str:
        reads.append(most)
        return block.text[:most]

    alive: dict[int, Block] = {}
    for place, text in places:
        alive[place] = block = Block.user(text)  # the one before it dies, and leaves its identity
        before = len(reads)

        assert [reader.read_once(read, block, most) for most in (1, 2, 1, 2)] == [
            text[:1],
            text[:2],
        ] * 2
        assert len(reads) == before + 2


def test_what_was_read_is_bounded_and_stays_with_its_summarizer() -> None:
    blocks = [Block.user(str(number)) for number in range(9)]
    alive = WeakSet(blocks)
    reader = BlockReader(max_results=3)
    while blocks:
        reader.read_once(str, blocks.pop())

    assert len(alive) <= 3
    del reader
    assert not alive


SHORT_LINES = st.lists(
    st.builds(
        SummaryLine,
        st.sampled_from((SummarySection.DONE, SummarySection.CONTEXT, SummarySection.SEEN)),
        st.sampled_from(("reads rows", "see (#3)", "it is " + "long " * 70, "`load_rows(path)`")),
        st.sampled_from((Ranges(), Ranges.of([9]), Ranges.of([3]), Ranges.of([12_345]))),
        source=st.sampled_from(("", "`Read a.py`")),
    ),
    max_size=12,
)


@given(SHORT_LINES, SHORT_LINES, st.integers(100, 900))
def test_a_page_is_never_longer_than_its_room(
    shared: list[SummaryLine], whole: list[SummaryLine], room: int
) -> None:
    page = SummaryPage(room)
    shared, whole = (
        [one for one in all_ if one.handles or not one.source] for all_ in (shared, whole)
    )
    page.add_shares(shared, {SummarySection.DONE: 0.7})
    for line in whole:
        page.add_whole(line)

    assert len(page.text) <= room - page.left


def test_a_line_that_cannot_be_shortened_between_words_is_left_out() -> None:
    page = SummaryPage(900)
    line = SummaryLine(SummarySection.CONTEXT, f"{'lib/' * 80}a.py", Ranges.of([3]))

    page.add_shares([line], {SummarySection.CONTEXT: 1.0})

    assert page.text == ""


def test_lines_of_one_block_stand_below_its_handle_and_are_read_back_with_it() -> None:
    page, handles = SummaryPage(900), Ranges.of([3])
    texts = ("the parser reads rows", "it skips what is empty (#7)", "then it writes them")
    for text in texts:
        page.add_whole(SummaryLine(SummarySection.CONTEXT, text, handles))
    page.add_whole(SummaryLine(SummarySection.CONTEXT, "alone", Ranges.of([5])))
    page.add_whole(
        SummaryLine(SummarySection.CONTEXT, "`load_rows`", Ranges.of([6]), source="`Read a.py`")
    )

    lines = [*read_earlier_lines(page.sections, None, Ranges.span(1, 9))]

    assert page.sections["Critical Context"].split("\n") == [
        "- the parser reads rows (#3)",
        "  - it skips what is empty (#7) (#3)",
        "  - then it writes them",
        "- alone (#5)",
        "- `Read a.py`: (#6)",
        "  - `load_rows`",
    ]
    assert [(line.text, line.newest, line.source) for line in lines] == [
        *((text, 3, "") for text in texts),
        ("alone", 5, ""),
        ("`load_rows`", 6, "`Read a.py`"),
    ]
