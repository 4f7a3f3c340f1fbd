"""Audits count calls as replays do, also after the log grew."""

from cutbank import Block, StoredSession
from cutbank.adapters.analysis.replaying.recordings import read_calls, read_recording


def test_calls_are_counted_as_replays_count_them_whenever_it_is(session: StoredSession) -> None:
    fork = session
    for number in range(3):
        session.append(Block.user("?"), Block.assistant("!"), Block.assistant("!", message_id="m"))
        session.append(Block.developer("? \ud83d"), Block.assistant("!", message_id="m"))
        session.record_call(session.view(at=2), call_id=f"late {number % 2}")
        fork.append(Block.assistant("so"), Block.assistant("and so"))
        for one in (session, fork):
            assert read_calls(one) == read_recording(one).calls
            assert read_calls(one) is read_calls(one)
        fork = session.fork(f"fork {number}")
    answers = [call.answer for call in read_calls(session) if call.answer]
    assert answers[:2] == [(4,), (5, 7)]
