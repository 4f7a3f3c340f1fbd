"""What is at stake: facts that only hidden history had when the agent wrote them down."""

import pytest
from fidelity_sessions import Talk, cut_talks
from hypothesis import given

from cutbank.domain.fidelity.anchors import AnchorKind
from cutbank.domain.fidelity.canonical_boundaries import Boundary
from cutbank.domain.fidelity.generic_keys import GENERIC_KEYS, GENERIC_PAIRS
from cutbank.domain.fidelity.later_references import Stake, candidates, stakes_of
from cutbank.domain.fidelity.rows import BY_AGENT, Said
from cutbank.domain.fidelity.session_reading import Reading, first_seen


def staked(talk: Talk, *boundaries: Boundary) -> list[str]:
    return [stake.key for stake in stakes_of(talk.read(), boundaries)]


def test_a_fact_that_only_hidden_rows_have_is_at_stake_when_the_agent_writes_it() -> None:
    talk = Talk().user("see src/zone.py").says("well").user("go").says("src/zone.py it is")

    (stake,) = stakes_of(talk.read(), [Boundary(2, 3)])

    assert stake == Stake(
        "src/zone.py", AnchorKind.PATH, segment=0, call=2, used_in=4, hidden_in=1, uses=1
    )
    assert stake.is_hard


def test_a_tail_of_what_was_said_is_at_stake_and_no_more_than_what_was_said() -> None:
    talk = (
        Talk().user("see core/zone.py").says("well").user("go").says("zone.py, not m/core/zone.py")
    )

    assert staked(talk, Boundary(2, 3)) == ["zone.py"]


def test_the_arguments_of_a_tool_are_written_down_but_not_its_name() -> None:
    talk = Talk().user("load_rows zone_of").says("well").calls_tool("app:load_rows", "zone_of")

    assert staked(talk, Boundary(2, 2)) == ["zone_of"]


def test_names_of_the_sessions_tools_are_never_at_stake() -> None:
    talk = Talk().user("zone_of").calls_tool("look_up", "x").returns("").says("a")
    talk.says("look_up, zone_of")

    assert staked(talk, Boundary(3, 4)) == ["zone_of"]


@pytest.mark.parametrize(
    "talk",
    [
        Talk().system("zone_of").user("zone_of").says("a").user("b").says("zone_of"),
        Talk().user("zone_of").says("a").user("b zone_of").says("zone_of"),
        Talk().user("zone_of").says("zone_of").user("b").says("a").says("zone_of"),
        Talk().user("x").says("a").user("b").says("zone_of"),
    ],
    ids=["a system prompt has it", "fresh input has it", "kept words have it", "nobody had it"],
)
def test_what_is_not_hidden_alone_is_not_at_stake(talk: Talk) -> None:
    boundary = Boundary(talk.calls, talk.rows[1].position if talk.calls == 3 else 3)
    if talk.rows[0].said is Said.SYSTEM:
        boundary = Boundary(2, 4)

    assert staked(talk, boundary) == []


def test_a_fact_is_at_stake_once_until_the_next_boundary() -> None:
    talk = Talk().user("zone_of").says("a").says("zone_of").says("zone_of").thinks("zone_of")
    talk.calls_tool("run", "b", more=True)

    one = candidates(talk.read(), [Boundary(2, 2)])
    two = candidates(talk.read(), [Boundary(2, 2), Boundary(4, 5)])

    assert [(stake.segment, stake.call, stake.uses) for stake in one] == [(0, 2, 3)]
    assert [(stake.segment, stake.call, stake.uses) for stake in two] == [(0, 2, 2), (1, 4, 1)]
    assert two[1].hidden_in == 4


def test_within_one_answer_the_first_row_is_the_use() -> None:
    talk = Talk().user("zone_of").says("a").thinks("zone_of")
    talk.calls_tool("run", "zone_of", more=True)

    (stake,) = stakes_of(talk.read(), [Boundary(2, 2)])

    assert (stake.used_in, stake.uses) == (3, 2)


def test_what_was_used_before_the_boundary_is_not_at_stake_there() -> None:
    talk = Talk().user("zone_of").says("zone_of").says("a")

    assert staked(talk, Boundary(3, 3)) == []


def test_generic_facts_are_counted_apart() -> None:
    talk = Talk().user("README.md src/zone.py").says("a").says("README.md src/zone.py")
    reading = talk.read()

    both = candidates(reading, [Boundary(2, 2)])

    assert {stake.key: stake.is_generic for stake in both} == {
        "README.md": True,
        "src/zone.py": False,
    }
    assert staked(talk, Boundary(2, 2)) == ["src/zone.py"]


def test_what_a_tool_says_again_behind_the_boundary_is_at_stake_loosely() -> None:
    talk = (
        Talk().user("zone_of").says("a").calls_tool("run", "b").returns("zone_of").says("zone_of")
    )

    loosely = candidates(talk.read(), [Boundary(2, 2)])

    assert [(stake.key, stake.call, stake.is_lifted) for stake in loosely] == [("zone_of", 3, True)]
    assert staked(talk, Boundary(2, 2)) == []


def test_what_a_tool_said_in_the_kept_window_is_not_at_stake_even_loosely() -> None:
    talk = Talk().user("zone_of").calls_tool("run", "b").returns("zone_of").says("zone_of")

    assert candidates(talk.read(), [Boundary(2, 2)]) == ()


def test_hard_kinds_are_those_that_nobody_makes_up() -> None:
    said = "src/zone.py https://z.example 1a2b3c4 ZoneError 4711 ms --zone zone_of"
    talk = Talk().user(said).says("a").says(said)

    stakes = stakes_of(talk.read(), [Boundary(2, 2)])

    assert [stake.key for stake in stakes if not stake.is_hard] == ["--zone", "zone_of"]
    assert len(stakes) == 7


@given(cut_talks())
def test_what_is_at_stake_is_seen_in_hidden_rows_only(
    cut: tuple[Reading, tuple[Boundary, ...]],
) -> None:
    reading, boundaries = cut
    rows = reading.rows.rows

    stakes = stakes_of(reading, boundaries)

    assert len({(stake.segment, stake.key) for stake in stakes}) == len(stakes)
    for stake in stakes:
        boundary = boundaries[stake.segment]
        carriers = [
            row
            for row, keys in zip(rows, reading.carried, strict=True)
            if stake.key in keys and first_seen(row) <= stake.call
        ]
        assert carriers
        assert all(row.position < boundary.first_kept for row in carriers)
        assert not any(row.said is Said.SYSTEM for row in carriers)
        assert stake.hidden_in == carriers[-1].position
        assert stake.call >= boundary.call
        used = rows[reading.index_at(stake.used_in)]
        assert used.said in BY_AGENT
        assert used.call == stake.call
        assert stake.key not in GENERIC_KEYS | reading.tool_names


@given(cut_talks())
def test_no_fact_is_left_out_that_only_hidden_rows_had(
    cut: tuple[Reading, tuple[Boundary, ...]],
) -> None:
    reading, boundaries = cut
    staked = {(stake.segment, stake.key) for stake in stakes_of(reading, boundaries)}

    for segment, boundary in enumerate(boundaries):
        ends = boundaries[segment + 1].call if segment + 1 < len(boundaries) else 10**9
        for index, facts in reading.written.items():
            row = reading.rows.rows[index]
            if not boundary.call <= row.call < ends:
                continue
            for key in facts.keys() - GENERIC_KEYS - reading.tool_names:
                seen = [
                    one
                    for one, keys in zip(reading.rows.rows, reading.carried, strict=True)
                    if key in keys and first_seen(one) <= row.call
                ]
                hidden = [
                    one.position < boundary.first_kept and one.said is not Said.SYSTEM
                    for one in seen
                ]
                if seen and all(hidden):
                    assert (segment, key) in staked


def test_the_lists_of_what_is_generic_are_read_as_they_are_written() -> None:
    assert {"README.md", "--force", "50%", "path/to/foo.ts"} <= GENERIC_KEYS
    assert not any(key.startswith(("/Users/", "/home/")) for key in GENERIC_KEYS)
    assert ("absolute", "paths") in GENERIC_PAIRS
    assert all(first <= second for first, second in GENERIC_PAIRS)
