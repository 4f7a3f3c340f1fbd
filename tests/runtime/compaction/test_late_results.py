"""A call leaves with its result whenever that came, and a boundary records what the view has."""

from collections.abc import Callable

import pytest
from short_sessions import shortens

from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

POLICY = ReserveHeadroom(keep_tokens=1_000)
LIMIT = 20_000


def call(session: StoredSession) -> int:
    return session.append(Block.user("go"), ToolCall(tool_call_id="c", name="wait")).last


def answer(session: StoredSession) -> None:
    session.append(ToolResult(tool_call_id="c", content="done " * 20))


def abandon(session: StoredSession) -> None:
    session.cancel_tool_call("c", "interrupted")


def talk(session: StoredSession) -> None:
    for turn in range(100):
        session.append(Block.user(f"question {turn} " + "word " * 100))
        session.append(Block.assistant(f"answer {turn} " + "text " * 110))


@pytest.mark.parametrize("end", [answer, abandon])
def test_a_call_that_ends_late_leaves_as_one_that_ended_at_once(
    store: SessionStore, end: Callable[[StoredSession], None]
) -> None:
    at_once, late = store.session("at once"), store.session("late")
    called = [call(session) for session in (at_once, late)]
    end(at_once)
    talk(at_once)
    talk(late)
    end(late)

    ended = at_once.compact(POLICY, limit=LIMIT)
    ended_late = late.compact(POLICY, limit=LIMIT)

    assert ended_late.post_tokens == pytest.approx(ended.post_tokens, rel=0.02)
    assert late.view().tokens == ended_late.post_tokens
    assert {called[1], late.position} <= set(ended_late.left)
    assert verify(store).violations == []


def test_a_result_that_comes_after_the_boundary_leaves_with_its_call_at_the_next(
    store: SessionStore,
) -> None:
    session = store.session("s")
    called = call(session)
    talk(session)
    first = session.compact(POLICY, limit=LIMIT)
    answer(session)
    answered = session.position
    before = session.fork("before it left")
    session.append(Block.user("go on"))

    second = session.compact(POLICY, limit=LIMIT)

    assert called in first.kept
    assert {called, answered} <= set(second.left)
    assert {called, answered} <= {entry.position for entry in before.view().entries}
    assert verify(store).violations == []


def test_a_pinned_result_goes_on_showing_shortened_and_is_counted_so(
    session: StoredSession,
) -> None:
    call(session)
    result = session.append(ToolResult(tool_call_id="c", content="a line\n" * 2_000)).last
    session.compact(shortens(result), limit=1_500)
    session.pin(result)
    shown = session.view().entries[-1].text
    for _ in range(10):
        session.append(Block.user("word " * 20), Block.assistant("text " * 40))
    before = session.view().tokens

    outcome = session.compact(ReserveHeadroom(reserve_tokens=300, keep_tokens=300), limit=1_500)

    view = session.view()
    assert (outcome.pre_tokens, outcome.post_tokens) == (before, view.tokens)
    assert view.tokens < before
    assert shown in [entry.text for entry in view.entries]
