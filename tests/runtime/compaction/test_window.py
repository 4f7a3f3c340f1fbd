"""A policy is asked before every call, so it may not cost what the view holds to say no."""

from dataclasses import replace

from cutbank import Block, ReserveHeadroom, StoredSession, ToolCall, ToolResult, Trigger, Usage
from cutbank.domain.window import LazySequence, Window


def window(session: StoredSession, limit: int = 200_000) -> Window:
    request = replace(session.loop(limit=limit).request, trigger=Trigger.THRESHOLD)
    return session.log.compactor().take_snapshot(request).window


def is_made(shown: Window) -> bool:
    assert isinstance(shown.items, LazySequence)
    return "_items" in vars(shown.items)


def test_a_policy_looks_at_blocks_only_where_it_fires(session: StoredSession) -> None:
    session.append(*(Block.user(f"What of file {number}?" * 9) for number in range(60)))
    policy, shown, full = ReserveHeadroom(), window(session), window(session, limit=4_000)

    assert policy.plan(shown) is None
    assert not is_made(shown)
    assert policy.fires(full)
    assert len(full.items) == 60


def test_what_comes_later_is_not_in_a_window_that_is_looked_at_late(session: StoredSession) -> None:
    said = session.append(Block.user("Look."), Block.assistant("Where?"), Block.user("Here."))
    session.append(ToolCall(tool_call_id="c", name="ls"))
    shown, same = window(session), window(session)
    before = list(same.items)

    session.append(ToolResult(tool_call_id="c", content="none"))
    session.pin(said.first)
    session.retract(said.last)
    session.record_call(session.view(), call_id="c", usage=Usage(input=90_000, output=10))
    session.view()

    assert not is_made(shown)
    assert list(shown.items) == before
    assert [item.is_open for item in before] == [False, False, False, True]
    assert shown.tokens == same.tokens


def test_what_is_besides_and_the_blocks_are_all_that_is_in_use(session: StoredSession) -> None:
    session.configure(system_prompt="Be brief. " * 100)
    session.append(*(Block.user("What of this file?" * 9) for _ in range(9)))
    estimated = window(session)
    session.record_call(session.view(), call_id="c", usage=Usage(input=9_000, output=10))
    reported = window(session)

    assert estimated.overhead_tokens >= 250
    for shown in (estimated, reported):
        blocks = sum(item.tokens for item in shown.items)
        assert shown.tokens == shown.used_tokens == blocks + shown.overhead_tokens
    assert reported.used_tokens >= 9_000
