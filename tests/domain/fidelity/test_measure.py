"""What of the stakes a policy's views carry, by the way in which they carry it."""

from dataclasses import replace

from fidelity_sessions import TEXTS, Cut, Talk, cut_talks, measure
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.anchors import AnchorKind
from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
from cutbank.domain.fidelity.rows import WHOLE_HISTORY, RowKind, ViewSegment
from cutbank.domain.fidelity.session_reading import SessionReading, find_first_call
from cutbank.domain.fidelity.visibility import SegmentVisibility
from cutbank.domain.ranges import Ranges

NOTHING = ViewSegment(call=1, after=10**9, kept=Ranges())

TALK = (
    Talk()
    .user("zone_of in src/zone.py")
    .calls_tool("look", "rows.toml")
    .returns("4711 ms, see src/zone.py")
    .says("well")
    .says("zone_of rows.toml")
    .says("4711 ms zone.py zone_of")
)
MEASURE = measure(TALK, (3, 4))


def hits(*spells: ViewSegment) -> list[str]:
    lost = {one.key for one in MEASURE.find_lost(spells)}
    return [stake.key for stake in MEASURE.stakes if stake.key not in lost]


def test_the_view_of_the_call_that_needed_it_counts() -> None:
    later = replace(NOTHING, call=4, summary="zone_of zone.py rows.toml")

    assert hits(WHOLE_HISTORY) == ["rows.toml", "zone_of", "4711ms", "zone.py"]
    assert hits(NOTHING, later) == ["zone.py"]
    assert hits(later, NOTHING) == ["zone.py"]
    assert hits(later) == ["rows.toml", "zone_of", "zone.py"]


def test_counts_are_kept_apart_by_kind() -> None:
    scores = MEASURE.score([replace(NOTHING, summary="zone_of 4711 ms")])

    assert (scores.boundaries, scores.stakes, scores.hits, scores.recall) == (1, 4, 2, 0.5)
    assert (scores.hard_stakes, scores.hard_hits) == (3, 1)


def test_generic_facts_are_not_counted() -> None:
    talk = Talk().user("README.md zone_of").says("a").says("README.md zone_of")
    scores = measure(talk, (2, 2)).score([replace(NOTHING, summary="README.md")])

    assert (scores.stakes, scores.hits) == (1, 0)


def test_what_was_lost_is_named_with_its_handle() -> None:
    lost = MEASURE.find_lost([replace(NOTHING, summary="zone_of rows.toml")])

    assert [(one.key, one.kind, one.call, one.hidden_in) for one in lost] == [
        ("4711ms", AnchorKind.NUMBER, 4, 3),
        ("zone.py", AnchorKind.PATH, 4, 3),
    ]


@given(cut_talks(), st.data())
def test_a_hit_is_what_stands_in_the_text_that_was_sent(cut: Cut, data: st.DataObject) -> None:
    # Positions lie between the rows, as those of notes do.
    rows = [replace(row, position=2 * row.position) for row in cut[0].rows.rows]
    reading = SessionReading(replace(cut[0].rows, rows=rows))
    boundaries = [replace(one, first_kept=2 * one.first_kept) for one in cut[1]]
    of = FidelityMeasure(reading, boundaries)
    positions = st.sets(st.integers(1, 2 * len(rows) + 2), max_size=12)
    of_rows = st.sets(st.sampled_from([row.position for row in rows]))
    spells = [
        ViewSegment(
            call=boundary.call,
            after=boundary.first_kept - data.draw(st.integers(1, 2)),
            kept=Ranges.of(at for at in data.draw(positions) if at < boundary.first_kept),
            shown={at: data.draw(TEXTS) for at in data.draw(of_rows)},
            summary=data.draw(TEXTS),
        )
        for boundary in boundaries
    ]
    spells = [
        replace(one, shown={at: text for at, text in one.shown.items() if is_sent_in(one, at)})
        for one in spells
    ]

    lost = {(one.key, one.call) for one in of.find_lost(spells)}

    for stake in of.stakes:
        sent = sent_at(reading, spells[stake.segment], stake.call)
        is_sent = stake.key in reading.words.find_carried_keys(sent)
        assert ((stake.key, stake.call) in lost) is not is_sent
        spell = spells[stake.segment]
        sight = SegmentVisibility(spell, reading)
        in_part = [row for row in rows if spell.shown.get(row.position)]
        assert len([*sight.iter_partial_texts(range(len(rows)), stake.call)]) == sum(
            find_first_call(row) <= stake.call for row in in_part
        )


def is_sent_in(spell: ViewSegment, position: int) -> bool:
    return position > spell.after or position in spell.kept


def sent_at(reading: SessionReading, spell: ViewSegment, call: int) -> str:
    """The text of a view, put together from its rows."""
    rows = [
        spell.shown.get(row.position, row.text)
        for row in reading.rows.rows
        if is_sent_in(spell, row.position)
        and (row.call < call if row.kind in BY_AGENT else row.call <= call)
    ]
    return "\n".join([spell.summary, *rows])


BY_AGENT = {RowKind.ASSISTANT, RowKind.THINKING, RowKind.TOOL_CALL}
