"""An earlier summary's lines are read back with the handles that still hold."""

from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.extraction.clean_text import add_handles
from cutbank.domain.summaries.extraction.sections import read_earlier_lines

HANDLES = st.sets(st.integers(1, 30), min_size=1, max_size=6).map(Ranges.of)


@given(st.lists(HANDLES, min_size=1, max_size=6), st.sets(st.integers(1, 30)).map(Ranges.of))
def test_a_line_keeps_its_handles_only_if_all_of_them_hold(
    handles: list[Ranges], covers: Ranges
) -> None:
    named = [Ranges(one.runs[-3:]) for one in handles]
    written = [add_handles(f"said {n}", one) for n, one in enumerate(handles)]

    lines = [
        *read_earlier_lines({"Done": "\n".join(f"- {line}" for line in written)}, None, covers)
    ]

    assert [(line.text, line.handles) for line in lines] == [
        (line, Ranges()) if one - covers else (f"said {n}", one)
        for n, (line, one) in enumerate(zip(written, named, strict=True))
    ]
