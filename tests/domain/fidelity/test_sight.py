"""What a call was sent: the rows behind a boundary, those that are kept, and no others."""

from dataclasses import replace

from fidelity_sessions import Talk, talks
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.rows import ViewSegment
from cutbank.domain.fidelity.session_reading import SessionReading, find_first_call
from cutbank.domain.fidelity.visibility import SegmentVisibility
from cutbank.domain.ranges import Ranges


@st.composite
def sights(draw: st.DrawFn) -> SegmentVisibility:
    """Of sessions with positions between their rows, as notes have them."""
    talk: Talk = draw(talks())
    rows = [replace(row, position=2 * row.position) for row in talk.rows]
    position = st.integers(1, 2 * len(rows) + 2)
    positions = st.sets(position, max_size=12)
    spell = ViewSegment(
        call=1,
        after=draw(position),
        kept=Ranges.of(draw(positions)),
        shown=dict.fromkeys(draw(positions), "in part"),
    )
    return SegmentVisibility(spell, SessionReading(replace(talk.read().rows, rows=rows)))


@given(sights(), st.data())
def test_a_call_always_sees_the_rows_of_the_definition(
    sight: SegmentVisibility, data: st.DataObject
) -> None:
    rows, spell = sight.reading.rows.rows, sight.segment
    places = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1))))
    call = data.draw(st.integers(1, sight.reading.rows.calls + 1))

    whole = {
        index
        for index in places
        if find_first_call(rows[index]) <= call
        and (rows[index].position > spell.after or rows[index].position in spell.kept)
        and rows[index].position not in spell.shown
    }

    assert sorted(sight.iter_visible_rows(places, call)) == sorted(whole)
    assert sight.has_any_row(places, call) == bool(whole)
    assert len(list(sight.iter_partial_texts(places, call))) == sum(
        rows[index].position in spell.shown and find_first_call(rows[index]) <= call
        for index in places
    )
