"""What a call was sent: the rows behind a boundary, those that are kept, and no others."""

from dataclasses import replace

from fidelity_sessions import Talk, talks
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.segments import Spell
from cutbank.domain.fidelity.session_reading import Reading, first_seen
from cutbank.domain.fidelity.visibility import Sight
from cutbank.domain.ranges import Ranges


@st.composite
def sights(draw: st.DrawFn) -> Sight:
    """Of sessions with positions between their rows, as notes have them."""
    talk: Talk = draw(talks())
    rows = [replace(row, position=2 * row.position) for row in talk.rows]
    position = st.integers(1, 2 * len(rows) + 2)
    positions = st.sets(position, max_size=12)
    spell = Spell(
        call=1,
        after=draw(position),
        kept=Ranges.of(draw(positions)),
        shown=dict.fromkeys(draw(positions), "in part"),
    )
    return Sight(spell, Reading(replace(talk.read().rows, rows=rows)))


@given(sights(), st.data())
def test_a_call_always_sees_the_rows_of_the_definition(sight: Sight, data: st.DataObject) -> None:
    rows, spell = sight.reading.rows.rows, sight.spell
    places = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1))))
    call = data.draw(st.integers(1, sight.reading.rows.calls + 1))

    whole = {
        index
        for index in places
        if first_seen(rows[index]) <= call
        and (rows[index].position > spell.after or rows[index].position in spell.kept)
        and rows[index].position not in spell.shown
    }

    assert sorted(sight.showing(places, call)) == sorted(whole)
    assert sight.shows_any(places, call) == bool(whole)
    assert len(list(sight.shown(places, call))) == sum(
        rows[index].position in spell.shown and first_seen(rows[index]) <= call for index in places
    )
