"""What becomes of a compaction while whose summary is written something else is decided."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import agent_talk
import pytest
from opened_stores import store_of

from cutbank import Block, CompactionOptions, Draft, Material, StoredSession, ToolCall, ToolResult
from cutbank.adapters.runtime.compaction.event_sink import make_status_listener
from cutbank.adapters.runtime.compaction.outcome import CompactionOutcome
from cutbank.domain.errors import StalePlanError
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

POLICY = ReserveHeadroom(reserve_tokens=1_000, keep_tokens=500)
LIMIT = 8_000


@dataclass
class Interrupted:
    """A summarizer during whose work something happens."""

    happens: Callable[[], object]
    times: int = 1
    asked: list[Material] = field(default_factory=list)
    name: str = "interrupted"

    def summarize(self, material: Material) -> Draft:
        self.asked.append(material)
        if len(self.asked) <= self.times:
            self.happens()
        return Draft(f"Summary number {len(self.asked)}.")


@pytest.fixture
def talk(session: StoredSession) -> StoredSession:
    agent_talk.talk(session, 20)
    return session


def compact(session: StoredSession, **options: object) -> CompactionOutcome:
    return session.compact(POLICY, limit=LIMIT, options=CompactionOptions(**options))  # type: ignore[arg-type]


def test_a_draft_is_used_again_where_its_blocks_are_still_the_ones(talk: StoredSession) -> None:
    # A boundary that is prepared makes the plan stale, and changes nothing of what is served.
    writer = Interrupted(lambda: compact(talk, activate=False))

    outcome = compact(talk, summarizers=[writer])

    assert outcome.compacted
    assert len(writer.asked) == 1
    assert outcome.summary == "Summary number 1."


def test_a_draft_of_other_blocks_is_written_anew(talk: StoredSession) -> None:
    others = ReserveHeadroom(reserve_tokens=1_000, keep_tokens=3_000)
    writer = Interrupted(lambda: talk.compact(others, limit=LIMIT))

    outcome = compact(talk, summarizers=[writer])

    assert outcome.compacted
    first, second = writer.asked
    assert second.previous is not None
    assert len(second.removed_items) < len(first.removed_items)
    summary = talk.view().summary
    assert summary is not None
    assert summary.text == "Summary number 2."
    assert set(summary.covers) >= {item.position for item in first.removed_items}


def test_where_others_did_it_already_nothing_is_recorded(talk: StoredSession) -> None:
    outcome = compact(talk, summarizers=[Interrupted(lambda: compact(talk))])

    assert not outcome.compacted
    assert outcome.post_tokens < outcome.pre_tokens
    assert "another compaction was decided" in outcome.reason
    view = talk.view()
    assert view.summary is not None
    assert view.summary.summarizer == "extractive"
    assert talk.log.compactor().decisions.read_state().requested == 0


def test_a_compaction_done_under_the_same_key_meanwhile_is_over(talk: StoredSession) -> None:
    shown: list[bool] = []
    store_of(talk).listeners.append(make_status_listener(shown.append))
    writer = Interrupted(lambda: compact(talk, idempotency_key="one"))

    outcome = compact(talk, idempotency_key="one", summarizers=[writer])

    assert outcome.boundary is not None
    assert shown == [True, True, False, False]


def test_who_is_overtaken_again_and_again_is_told(talk: StoredSession) -> None:
    before = talk.view()

    def happens() -> None:
        talk.append(Block.user("more " * 50))  # so that each plan has blocks of its own
        compact(talk, activate=False)

    writer = Interrupted(happens, times=9)
    with pytest.raises(StalePlanError):
        talk.compact(
            replace(POLICY, keep_tokens=0),
            limit=LIMIT,
            options=CompactionOptions(summarizers=[writer]),
        )

    assert len(writer.asked) == 3
    assert talk.view().boundary is None
    assert talk.view().entries[: len(before.entries)] == before.entries
    assert talk.log.compactor().decisions.read_state().requested == 0


def test_a_call_that_waits_again_is_not_behind_a_boundary(session: StoredSession) -> None:
    session.append(Block.user("look " + "x" * 2_000))
    call = session.append(ToolCall(tool_call_id="c", name="read", arguments={})).last
    result = session.append(ToolResult(tool_call_id="c", content="y" * 2_000)).last
    session.append(Block.assistant("seen " + "z" * 2_000))
    session.hide(result)
    session.append(Block.user("and now?"))
    session.compact(ReserveHeadroom(keep_tokens=0), limit=LIMIT)
    assert call not in {entry.position for entry in session.view().entries}

    session.retract(result)

    assert call in {entry.position for entry in session.view().entries}
    assert session.log.state.open_calls == {"c": call}
