"""What is at stake: facts that only hidden history had when the agent wrote them down."""

from fidelity_sessions import Cut, Talk, cut_talks, measure
from hypothesis import given

from cutbank.domain.fidelity.anchors import AnchorKind
from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
from cutbank.domain.fidelity.generic_keys import GENERIC_KEYS, GENERIC_PAIRS
from cutbank.domain.fidelity.later_references import LaterReference
from cutbank.domain.fidelity.rows import RowKind
from cutbank.domain.fidelity.session_reading import find_first_call


def test_a_fact_that_only_hidden_rows_have_is_at_stake_when_the_agent_writes_it() -> None:
    talk = Talk().user("see src/zone.py").says("well").user("go").says("src/zone.py it is")

    (stake,) = measure(talk, (2, 3)).stakes

    assert stake == LaterReference(
        "src/zone.py", AnchorKind.PATH, segment=0, call=2, used_in=4, hidden_in=1
    )
    assert stake.is_hard


def test_names_of_tools_are_never_at_stake() -> None:
    talk = Talk().user("load_rows zone_of").says("well").calls_tool("app:load_rows", "zone_of")
    named = Talk().user("look_up zone_of").calls_tool("look_up", "x").returns("").says("a")

    assert [stake.key for stake in measure(talk, (2, 2)).stakes] == ["zone_of"]
    named.says("look_up, zone_of")
    assert [stake.key for stake in measure(named, (3, 4)).stakes] == ["zone_of"]


def test_a_fact_is_at_stake_once_until_the_next_boundary() -> None:
    talk = Talk().user("zone_of").says("a").says("zone_of").says("zone_of").thinks("zone_of")
    talk.calls_tool("run", "b", more=True)

    one, two = measure(talk, (2, 2)).stakes, measure(talk, (2, 2), (4, 5)).stakes

    assert [(stake.segment, stake.call) for stake in one] == [(0, 2)]
    assert [(stake.segment, stake.call) for stake in two] == [(0, 2), (1, 4)]
    assert two[1].hidden_in == 4
    # Within one answer the first row is the use.
    answer = Talk().user("zone_of").says("a").thinks("zone_of")
    (stake,) = measure(answer.calls_tool("run", "zone_of", more=True), (2, 2)).stakes
    assert stake.used_in == 3


def test_hard_kinds_are_those_that_nobody_makes_up() -> None:
    said = "src/zone.py https://z.example 1a2b3c4 ZoneError 4711 ms --zone zone_of"
    talk = Talk().user(said).says("a").says(said)

    stakes = measure(talk, (2, 2)).stakes

    assert [stake.key for stake in stakes if not stake.is_hard] == ["--zone", "zone_of"]
    assert len(stakes) == 7


@given(cut_talks())
def test_what_is_at_stake_is_always_what_the_definition_says(cut: Cut) -> None:
    reading, boundaries = cut
    rows = reading.rows.rows
    expected: dict[tuple[int, str], tuple[int, int, int]] = {}
    for segment, boundary in enumerate(boundaries):
        ends = boundaries[segment + 1].call if segment + 1 < len(boundaries) else 10**9
        known = GENERIC_KEYS | reading.tool_names
        for call, index in reading.agent_rows:
            if not boundary.call <= call < ends:
                continue
            for key in reading.facts_by_agent[index].keys() - known:
                seen = [
                    row
                    for row, keys in zip(rows, reading.row_keys, strict=True)
                    if key in keys and find_first_call(row) <= call
                ]
                hidden = [
                    row.position < boundary.first_kept and row.kind is not RowKind.SYSTEM
                    for row in seen
                ]
                if seen and all(hidden):
                    place = call, rows[index].position, seen[-1].position
                    expected.setdefault((segment, key), place)

    found = FidelityMeasure(reading, boundaries).stakes

    assert len(found) == len(expected)
    assert {
        (one.segment, one.key): (one.call, one.used_in, one.hidden_in) for one in found
    } == expected


def test_the_lists_of_what_is_generic_are_read_as_they_are_written() -> None:
    assert {"README.md", "--force", "50%", "path/to/foo.ts"} <= GENERIC_KEYS
    assert not any(key.startswith(("/Users/", "/home/")) for key in GENERIC_KEYS)
    assert ("absolute", "paths") in GENERIC_PAIRS
    assert all(first <= second for first, second in GENERIC_PAIRS)
