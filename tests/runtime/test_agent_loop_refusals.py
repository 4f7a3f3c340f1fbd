"""After a provider refused a view as too long: one compaction, and then an error that helps."""

from dataclasses import replace
from typing import ClassVar

import pytest
from agent_talk import TOO_LONG, Scripted, full, talk

from cutbank import AgentLoop, Block, Draft, LoopOptions, Material, StoredSession
from cutbank.domain.errors import ContextOverflowError, NothingToCompactError, SummarizerFailedError
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.window import OnFailure, Plan, Window

LIMIT = 8_000


def boundaries(told: list[CompactionEvent]) -> int:
    return sum(happening.moment is CompactionEventKind.ACTIVATED for happening in told)


@pytest.mark.claim("S2.12", "S2.13", "S2.36")
def test_a_second_overflow_is_an_error(session: StoredSession, told: list[CompactionEvent]) -> None:
    loop = full(session).loop(limit=LIMIT)
    loop.handle_overflow(TOO_LONG)

    with pytest.raises(ContextOverflowError) as caught:
        # Another process goes on after a restart: it is the same request.
        session.loop(limit=LIMIT, model="some-model").handle_overflow(TOO_LONG)

    error = caught.value
    assert boundaries(told) == 1
    assert (error.tokens, error.limit, error.model) == (9_100, 8_000, "some-model")
    assert (error.estimated_tokens, error.max_tokens) == (error.tokens, error.limit)
    for command in ("cutbank compact", "/compact", "/clear", "/model"):
        assert command in str(error)
        assert any(command in hint for hint in error.hints), command
    assert f"#{error.largest[0]} " in str(error)
    assert "\n" not in str(error)

    talk(session, 20)  # an answer allows another
    loop.handle_overflow(TOO_LONG)
    assert boundaries(told) == 2


def test_what_cannot_be_made_smaller_is_named(session: StoredSession) -> None:
    huge = session.append(Block.user("x" * 50_000)).last
    session.pin(huge)
    loop = session.loop(limit=LIMIT)

    with pytest.raises(ContextOverflowError, match="largest blocks are #") as caught:
        loop.handle_overflow(TOO_LONG)

    assert caught.value.largest == (huge,)
    assert isinstance(caught.value.__cause__, NothingToCompactError)


class Idle(ReserveHeadroom):
    """A policy that never has a plan."""

    name: ClassVar[str] = "idle"

    def plan(self, window: Window) -> Plan | None:
        return None


def test_a_policy_that_does_nothing_after_an_overflow_is_an_error(session: StoredSession) -> None:
    loop = full(session).loop(limit=LIMIT, policy=Idle())

    with pytest.raises(ContextOverflowError):
        loop.handle_overflow(TOO_LONG)

    assert loop.last is not None
    assert loop.last.post_tokens == loop.last.pre_tokens


@pytest.mark.claim("S2.37", "S3.11")
def test_other_errors_are_raised_again(session: StoredSession, told: list[CompactionEvent]) -> None:
    error = RuntimeError("rate limit exceeded: too many tokens per minute")
    loop = full(session).loop(limit=LIMIT)

    with pytest.raises(RuntimeError) as caught:
        loop.handle_overflow(error)

    assert caught.value is error
    assert not told
    assert session.view().boundary is None


# Where no summary can be had


class Unforgiving(ReserveHeadroom):
    """Leaves the view as it is, rather than to go without a summary."""

    name: ClassVar[str] = "unforgiving"

    def plan(self, window: Window) -> Plan | None:
        plan = super().plan(window)
        return plan and replace(plan, on_failure=OnFailure.UNCHANGED)


def failing(session: StoredSession) -> AgentLoop:
    def fails(material: Material) -> Draft:
        raise SummarizerFailedError("no such model")

    return full(session).loop(
        limit=LIMIT, policy=Unforgiving(), options=LoopOptions(summarizers=[Scripted(fails)])
    )


def test_a_policy_may_do_without_a_summary(
    session: StoredSession, told: list[CompactionEvent]
) -> None:
    loop = failing(session)
    before = session.view()

    view = loop.prepare()

    assert (view.boundary, view.entries) == (None, before.entries)
    assert told[-1].moment is CompactionEventKind.FAILED
    assert told[-1].reason == "scripted: no such model"


def test_after_an_overflow_it_is_an_error_that_says_who_failed(session: StoredSession) -> None:
    with pytest.raises(ContextOverflowError, match="scripted: no such model"):
        failing(session).handle_overflow(TOO_LONG)

    assert session.view().boundary is None
