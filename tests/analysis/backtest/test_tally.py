"""What is counted of each call: what was answered, and how long after the call before."""

from datetime import UTC, datetime, timedelta

from cutbank import Block, StoredSession
from cutbank.adapters.analysis.backtest.session_log import read_recorded_answers
from cutbank.adapters.analysis.replaying.recordings import read_recording
from cutbank.domain.blocks import Origin
from cutbank.domain.session_events import ModelCalled, Usage

BEGAN = datetime(2025, 3, 1, 12, tzinfo=UTC)


def imported(session: StoredSession, minutes: list[float | None]) -> StoredSession:
    """A question at each of these minutes, the record of the call before, and an answer."""
    seen = None
    for number, minute in enumerate(minutes):
        time = None if minute is None else (BEGAN + timedelta(minutes=minute)).isoformat()
        origin = Origin(format="elsewhere", time=time)
        session.append(Block.user(f"question {number}", origin=origin))
        view = session.view()
        if seen is not None:
            session.record_call(seen, call_id=f"call {number}", model="m")
        session.append(Block.assistant("a" * 40, origin=origin))
        seen = view
    return session


def gaps(session: StoredSession) -> list[float | None]:
    return [one.gap_s for one in read_recorded_answers(read_recording(session))]


def test_pauses_are_told_though_a_record_without_a_time_stands_before_the_call(
    session: StoredSession,
) -> None:
    imported(session, [0, 1, 21])

    log = read_recording(session)
    assert isinstance(log.get_event(log.calls[2].last_seen_position).event, ModelCalled)
    assert gaps(session) == [None, 60.0, 1_200.0]


def test_without_times_of_its_source_nothing_is_known_of_pauses(session: StoredSession) -> None:
    imported(session, [None, None, None])

    assert gaps(session) == [None, None, None]


def test_a_clock_that_was_set_back_makes_no_pause_and_hides_none(session: StoredSession) -> None:
    imported(session, [10, 2, 30])

    assert gaps(session) == [None, 0.0, 1_200.0]


def test_an_answer_is_of_the_size_that_was_reported_or_else_of_its_blocks(
    session: StoredSession,
) -> None:
    for number, usage in enumerate([Usage(input=90, output=7), None]):
        session.append(Block.user(f"question {number}"))
        view = session.view()
        session.append(Block.assistant("a" * 40))
        session.record_call(view, call_id=f"call {number}", model="m", usage=usage)

    assert [one.output_tokens for one in read_recorded_answers(read_recording(session))] == [7, 10]
