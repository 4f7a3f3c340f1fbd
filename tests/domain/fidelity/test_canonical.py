"""Where all policies are cut alike: by size, and never through an answer or a tool call."""

from dataclasses import replace

from fidelity_sessions import Talk, talks
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.later_references import (
    FRAMING_TOKENS,
    KEPT_SHARE,
    RESERVE_TOKENS,
    RowBoundary,
    find_canonical_boundaries,
    find_legal_row_cuts,
)
from cutbank.domain.fidelity.rows import AGENT_KINDS, RowKind
from cutbank.domain.fidelity.session_reading import SessionReading

ROOM = 2_000
LIMIT = RESERVE_TOKENS + ROOM
"""Tails of 2,000 tokens fit, and 1,600 may be kept."""


def words(tokens: int) -> str:
    """A text that takes so many tokens as a row."""
    return "w" * 4 * (tokens - FRAMING_TOKENS)


def test_a_system_prompt_takes_no_room_and_no_window_begins_with_it() -> None:
    talk = Talk().system("w" * 100_000).user(words(1_000)).says(words(1_000)).says("done")
    assert find_canonical_boundaries(talk.read(), LIMIT) == ()

    talk = Talk().user(words(900)).says(words(900)).system("p").user(words(1_000)).says("done")
    assert find_canonical_boundaries(talk.read(), LIMIT) == (RowBoundary(2, 4),)


def test_tokens_are_rounded_up_and_each_row_is_framed() -> None:
    whole = "w" * 4 * (1_000 - FRAMING_TOKENS)
    fits = Talk().user(whole).user(whole).says("done")
    rounded_up = Talk().user(whole).user(whole + "w").says("done")
    framed = Talk().user(whole).user(whole).user("").says("done")

    assert find_canonical_boundaries(fits.read(), LIMIT) == ()
    assert find_canonical_boundaries(rounded_up.read(), LIMIT) == (RowBoundary(1, 2),)
    assert find_canonical_boundaries(framed.read(), LIMIT) == (RowBoundary(1, 2),)


def test_where_no_tail_is_small_enough_the_last_legal_one_is_kept() -> None:
    talk = Talk().user("go").calls_tool("look").returns(words(5_000)).says("done")

    assert find_canonical_boundaries(talk.read(), LIMIT) == (RowBoundary(2, 2),)
    # The result cannot be parted from its call, which is the first row: that is no progress.
    talk = Talk().calls_tool("look").returns(words(5_000)).says("done").says("more")
    assert find_canonical_boundaries(talk.read(), LIMIT) == (RowBoundary(3, 3),)


def test_a_window_parts_no_result_from_its_call_and_no_open_call_holds_it_up() -> None:
    talk = Talk().calls_tool("a", id="a").calls_tool("b", id="b").returns("b", id="b")
    talk.user("meanwhile").returns("a", id="a").user("then").says("done")

    assert find_legal_row_cuts(talk.rows) == [0, 5, 6]
    unanswered = Talk().calls_tool("a", id="a").user("go on").says("done")
    assert find_legal_row_cuts(unanswered.rows) == [0, 1, 2]


def tail(reading: SessionReading, first: int, call: int) -> int:
    return sum(
        row.tokens + FRAMING_TOKENS
        for row in reading.rows.rows[reading.find_index(first) : reading.count_rows_seen(call)]
        if row.kind is not RowKind.SYSTEM
    )


@given(talks(), st.integers(1_400, 3_000), st.integers(1, 500))
def test_boundaries_go_forward_and_part_nothing(talk: Talk, room: int, wide: int) -> None:
    for index, row in enumerate(talk.rows):
        talk.rows[index] = replace(row, text=row.text + "w" * 4 * (row.position * 137 % wide))
    reading, limit = talk.read(), RESERVE_TOKENS + room
    legal = [talk.rows[index].position for index in find_legal_row_cuts(talk.rows)]

    before = RowBoundary(0, 1)
    for boundary in find_canonical_boundaries(reading, limit):
        assert boundary.call > before.call
        assert boundary.first_kept > before.first_kept
        assert boundary.first_kept in legal
        assert tail(reading, before.first_kept, boundary.call) > room
        kept = tail(reading, boundary.first_kept, boundary.call)
        seen = [
            at for at in legal if reading.find_index(at) < reading.count_rows_seen(boundary.call)
        ]
        assert kept <= KEPT_SHARE * limit or boundary.first_kept == seen[-1]
        longer = [at for at in seen if at < boundary.first_kept]
        assert not longer or tail(reading, longer[-1], boundary.call) > KEPT_SHARE * limit
        before = boundary


@given(talks())
def test_no_legal_cut_parts_what_belongs_together(talk: Talk) -> None:
    for cut in find_legal_row_cuts(talk.rows):
        before, behind = talk.rows[:cut], talk.rows[cut:]
        answers = [
            {row.call for row in rows if row.kind in AGENT_KINDS} for rows in (before, behind)
        ]
        assert not answers[0] & answers[1]
        asked = {row.call_id for row in before if row.kind is RowKind.TOOL_CALL}
        assert not asked & {row.call_id for row in behind if row.kind is RowKind.TOOL_RESULT}
        assert behind[0].kind is not RowKind.TOOL_RESULT
