"""What of the stakes a policy's views carry, by the way in which they carry it."""

from dataclasses import replace

from fidelity_sessions import TEXTS, Talk, cut_talks, dropping
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.anchors import AnchorKind
from cutbank.domain.fidelity.canonical_boundaries import Boundary
from cutbank.domain.fidelity.fidelity_measure import LostKey, Measure
from cutbank.domain.fidelity.rows import Said
from cutbank.domain.fidelity.segments import WHOLE, Spell
from cutbank.domain.fidelity.session_reading import Reading
from cutbank.domain.ranges import Ranges

Cut = tuple[Reading, tuple[Boundary, ...]]
NOTHING = Spell(call=1, after=10**9, kept=Ranges())

TALK = (
    Talk()
    .user("zone_of in src/zone.py")
    .calls_tool("look", "rows.toml")
    .returns("4711 ms, see src/zone.py")
    .says("well")
    .says("zone_of rows.toml")
    .says("4711 ms zone.py zone_of")
)
BOUNDARIES = (Boundary(3, 4),)
MEASURE = Measure(TALK.read(), BOUNDARIES)


def hits(*spells: Spell) -> list[str]:
    return [stake.key for stake in MEASURE.hits(spells)]


def test_what_is_at_stake_is_what_the_session_used_again() -> None:
    assert [stake.key for stake in MEASURE.stakes] == ["rows.toml", "zone_of", "4711ms", "zone.py"]


def test_the_whole_history_carries_everything_and_nothing_carries_nothing() -> None:
    assert hits(WHOLE) == hits() == ["rows.toml", "zone_of", "4711ms", "zone.py"]
    assert hits(NOTHING) == []


def test_kept_rows_carry_what_they_say() -> None:
    assert hits(replace(NOTHING, kept=Ranges.span(1, 1))) == ["zone_of", "zone.py"]
    assert hits(replace(NOTHING, kept=Ranges([(2, 2), (4, 4)]))) == ["rows.toml"]


def test_a_kept_row_that_does_not_show_whole_carries_what_shows() -> None:
    kept = replace(NOTHING, kept=Ranges.span(1, 3))

    assert hits(replace(kept, shown={1: "zone_of", 3: "src/z [...]"})) == ["rows.toml", "zone_of"]
    assert hits(replace(kept, kept=Ranges.span(3, 3), shown={3: "4711 ms"})) == ["4711ms"]


def test_what_shows_of_a_row_counts_only_for_calls_that_could_see_the_row() -> None:
    talk = Talk().user("src/app.py").says("").says("src/app.py")
    measure = Measure(talk.read(), [Boundary(1, 3)])
    shortened = Spell(call=1, after=2, kept=Ranges.span(2, 2), shown={2: "src/app.py"})
    early = Measure(Talk().user("src/app.py").says("src/app.py").read(), [Boundary(1, 3)])

    # Call 1 wrote row 2 and was not sent it; call 2 was.
    assert [stake.key for stake in measure.hits([shortened])] == ["src/app.py"]
    assert early.hits([shortened]) == ()
    assert early.scores([shortened]).loose_hits == 0


def test_rows_behind_the_boundary_show_as_they_are_once_the_call_sees_them() -> None:
    # Call 3 cannot see its own answer, call 4 can see that of call 3.
    assert hits(replace(NOTHING, after=4)) == []
    assert hits(replace(NOTHING, after=2)) == ["4711ms", "zone.py"]


def test_a_summary_carries_what_it_says_and_the_parts_of_it() -> None:
    assert hits(replace(NOTHING, summary="Read core/src/zone.py, m.zone_of.")) == [
        "zone_of",
        "zone.py",
    ]
    assert hits(replace(NOTHING, summary="the zone file, and rows")) == []


def test_what_is_kept_anyway_is_no_merit_of_the_summary() -> None:
    scores = MEASURE.scores(
        [replace(NOTHING, kept=Ranges.span(1, 1), summary="rows.toml and zone_of")]
    )

    assert (scores.hits, scores.told_hits, scores.carried) == (3, 2, 2)
    assert scores.precision == 1.0


def test_the_view_of_the_call_that_needed_it_counts() -> None:
    later = replace(NOTHING, call=4, summary="zone_of zone.py rows.toml")

    assert hits(NOTHING, later) == ["zone.py"]
    assert hits(later, NOTHING) == ["zone.py"]
    assert hits(later) == ["rows.toml", "zone_of", "zone.py"]


def test_counts_are_kept_apart_by_kind_and_use() -> None:
    scores = MEASURE.scores([replace(NOTHING, summary="zone_of 4711 ms")])

    assert (scores.boundaries, scores.stakes, scores.hits, scores.recall) == (1, 4, 2, 0.5)
    assert (scores.hard_stakes, scores.hard_hits) == (3, 1)
    assert (scores.uses, scores.uses_hit) == (5, 3)


def test_generic_facts_are_counted_with_the_others_in_a_count_of_their_own() -> None:
    talk = Talk().user("README.md zone_of").says("a").says("README.md zone_of")
    measure = Measure(talk.read(), [Boundary(2, 2)])

    scores = measure.scores([replace(NOTHING, summary="README.md")])

    assert (scores.stakes, scores.hits) == (1, 0)
    assert (scores.generic_stakes, scores.generic_hits) == (2, 1)


def test_what_a_tool_said_again_counts_loosely_and_lifts_nothing_there() -> None:
    talk = (
        Talk().user("zone_of").says("a").calls_tool("run", "b").returns("zone_of").says("zone_of")
    )
    measure = Measure(talk.read(), [Boundary(2, 2)])
    trimmed = Spell(call=3, after=4, kept=Ranges.span(4, 4), shown={4: "zone_of"})

    def loose(*spells: Spell) -> tuple[int, int, int]:
        scores = measure.scores(spells)
        return scores.stakes, scores.loose_stakes, scores.loose_hits

    assert loose(Spell(call=1, after=1, kept=Ranges())) == (0, 1, 0)
    assert loose(trimmed) == (0, 1, 0)
    assert loose(Spell(call=1, after=1, kept=Ranges(), summary="zone_of")) == (0, 1, 1)
    assert loose(WHOLE) == (0, 1, 1)


def test_what_was_lost_is_named_with_its_handle() -> None:
    lost = MEASURE.lost([replace(NOTHING, summary="zone_of rows.toml")])

    assert lost == (
        LostKey("4711ms", AnchorKind.NUMBER, call=4, position=3),
        LostKey("zone.py", AnchorKind.PATH, call=4, position=3),
    )


@given(cut_talks())
def test_the_full_history_scores_all_and_a_drop_nothing(cut: Cut) -> None:
    measure = Measure(*cut)

    full, none = measure.scores([WHOLE]), measure.scores(dropping(*cut))

    assert full.stakes == full.hits == len(measure.stakes)
    assert full.hard_hits == full.hard_stakes
    assert full.uses_hit == full.uses
    assert full.generic_hits == full.generic_stakes
    assert full.loose_hits == full.loose_stakes
    assert none.hits == none.hard_hits == none.uses_hit == none.loose_hits == none.generic_hits == 0
    assert measure.lost([WHOLE]) == ()
    assert len(measure.lost(dropping(*cut))) == none.stakes


@given(cut_talks(), TEXTS, TEXTS)
def test_a_longer_summary_never_carries_less(cut: Cut, summary: str, more: str) -> None:
    measure = Measure(*cut)

    short = measure.scores(dropping(*cut, summary))
    long = measure.scores(dropping(*cut, f"{summary}\n{more}"))

    assert long.hits >= short.hits
    assert long.uses_hit >= short.uses_hit
    assert long.generic_hits >= short.generic_hits
    assert long.loose_hits >= short.loose_hits


@given(cut_talks(), st.data())
def test_a_hit_is_what_stands_in_the_text_that_was_sent(cut: Cut, data: st.DataObject) -> None:
    reading, boundaries = cut
    measure = Measure(reading, boundaries)
    positions = st.sets(st.sampled_from([row.position for row in reading.rows.rows]))
    spells = [
        Spell(
            call=boundary.call,
            after=boundary.first_kept - 1,
            kept=Ranges.of(at for at in data.draw(positions) if at < boundary.first_kept),
            shown={at: data.draw(TEXTS) for at in data.draw(positions)},
            summary=data.draw(TEXTS),
        )
        for boundary in boundaries
    ]
    spells = [
        replace(one, shown={at: text for at, text in one.shown.items() if at in one.kept})
        for one in spells
    ]

    carried = set(measure.hits(spells))

    for stake in measure.stakes:
        sent = sent_at(reading, spells[stake.segment], stake.call)
        assert (stake in carried) == (stake.key in reading.words.carried(sent))


def sent_at(reading: Reading, spell: Spell, call: int) -> str:
    """The text of a view, put together from its rows."""
    rows = [
        spell.shown.get(row.position, row.text)
        for row in reading.rows.rows
        if (row.position > spell.after or row.position in spell.kept)
        and (row.call < call if row.said in BY_AGENT else row.call <= call)
    ]
    return "\n".join([spell.summary, *rows])


BY_AGENT = {Said.ASSISTANT, Said.THINKING, Said.TOOL_CALL}
