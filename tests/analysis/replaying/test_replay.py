"""A replay of a stored session: what it says, what it stores, and what it refuses."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import cutbank
from cutbank import Block, Pi, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.deciders import make_summary_writer
from cutbank.adapters.analysis.run_replay import read_recording
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.domain.compaction_terms import CompactionTerms
from cutbank.domain.errors import (
    InvalidSettingError,
    PolicyFailedError,
    SummarizerFailedError,
)
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.window import Plan, Window
from cutbank.projections.audit_entries import AuditedCall
from cutbank.projections.policy_decider import PolicyDecider
from cutbank.projections.replay import replay_recording

LIMIT = 1_500
SMALL = {"keep_tokens": "300", "reserve_tokens": "300"}
PI: Any = {"policy": "pi", "settings": SMALL, "limit": LIMIT}


def work(
    session: StoredSession, turns: int, between: Callable[[int], object] = lambda turn: None
) -> None:
    """Turns in which an agent reads a file; no call is recorded, as in many transcripts."""
    for turn in range(turns):
        session.append(Block.user(f"question {turn} " + "q" * 200))
        between(turn)
        session.append(
            Block.assistant(f"answer {turn}", message_id=f"m{turn}"),
            ToolCall(
                tool_call_id=f"c{turn}",
                name="read",
                arguments='{"path": "src/a \\"b\\".py", "lines": [1, 2]}',
                message_id=f"m{turn}",
            ),
        )
        session.append(ToolResult(tool_call_id=f"c{turn}", content=f"result {turn} " + "r" * 400))


# What it says


def test_a_replay_writes_nothing_and_tells_once_what_left_at_each_boundary(
    store: SessionStore, session: StoredSession
) -> None:
    work(session, 30)
    before = session.position, session.log.lineages, session.view()

    done = cutbank.replay(session, **PI)

    assert (session.position, session.log.lineages, session.view()) == before
    assert verify(store).violations == []
    left = [one.left for one in done.compactions]
    assert len(left) == len(done.compactions) > 2
    assert all(left)
    seen = left[0]
    for handles in left[1:]:
        assert not handles & seen
        seen |= handles
    kept = done.compactions[-1].boundary
    log = read_recording(session).log
    blocks = {at for at in range(1, kept.after + 1) if log[at].tokens}
    assert {at for at in blocks if at not in kept.kept} == set(seen)


def test_a_programs_records_neither_change_a_replay_nor_hide_a_call(store: SessionStore) -> None:
    plain, recorded = store.session("plain"), store.session("recorded")
    work(plain, 30, lambda turn: plain.configure(title=f"turn {turn}"))
    work(recorded, 30, lambda turn: recorded.records.put("state", turn))
    recorded.records.put("state", "at the end")

    one, other = (cutbank.replay(session, **PI) for session in (plain, recorded))

    assert len(one.compactions) > 2
    hidden = {"originator_id", "timestamp", "subject"}
    assert [made.boundary.model_dump(exclude=hidden) for made in other.compactions] == [
        made.boundary.model_dump(exclude=hidden) for made in one.compactions
    ]
    assert [(call.tokens, len(call.compactions)) for call in other.calls] == [
        (call.tokens, len(call.compactions)) for call in one.calls
    ]
    entries = cutbank.audit(recorded).read_between()
    assert sum(isinstance(entry, AuditedCall) for entry in entries) == len(one.calls)


def test_a_session_with_next_to_nothing_is_no_error(store: SessionStore) -> None:
    rows: list[tuple[Callable[[StoredSession], Any], int]] = [
        (lambda _: None, 0),
        (lambda session: session.append(Block.user("one " * 900)), 0),
        (lambda session: session.append(Block.assistant("one " * 900)), 1),
        (lambda session: session.configure(system_prompt="be brief"), 0),
    ]
    for fill, calls in rows:
        for policy in ["none", "recorded", "pi", "scored-pruning"]:
            session = store.session(f"{policy} {fill}")
            fill(session)

            done = cutbank.replay(session, policy, limit=100)

            assert (len(done.calls), done.compactions) == (calls, ()), (policy, fill)


@dataclass(frozen=True)
class Raises:
    """A policy with a mistake."""

    name: ClassVar[str] = "raises"

    def plan(self, _: Window) -> Plan | None:
        raise ZeroDivisionError("of its own making")


def test_a_policy_that_raises_is_told_with_the_call(session: StoredSession) -> None:
    work(session, 2)

    with pytest.raises(PolicyFailedError, match=r"raises failed at call 1 .* of its own making"):
        cutbank.replay(session, Raises())


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"policy": "nobody"}, "nobody"),
        ({"policy": "pi@nothing"}, "nothing"),
        ({"policy": "pi", "settings": {"no_such": "1"}}, "no_such"),
        ({"policy": "none", "settings": {"keep_tokens": "1"}}, "none has no settings"),
        ({"policy": "pi", "limit": 0}, "limit cannot be 0"),
        ({"policy": "pi", "budget": 0}, "budget cannot be 0"),
        ({"policy": "pi", "summarizer": "poet"}, "no summarizer 'poet'"),
        ({"policy": "none", "lineage": "x"}, "decides nothing new"),
        ({"policy": "recorded", "lineage": "x"}, "decides nothing new"),
        ({"policy": "pi", "allow_llm": True}, "are for summaries by llm"),
        ({"policy": "pi", "cache": Path("c.db")}, "are for summaries by llm"),
        *(
            ({"policy": "pi", "lineage": lineage}, "lineage")
            for lineage in ("main", "recorded", "")
        ),
    ],
)
def test_what_cannot_be_is_refused(session: StoredSession, how: dict[str, Any], said: str) -> None:
    work(session, 2)

    with pytest.raises(InvalidSettingError, match=said):
        cutbank.replay(session, **how)

    assert session.log.lineages == []


# What it stores


def test_a_fork_is_replayed_from_its_parents_first_event(
    store: SessionStore, session: StoredSession
) -> None:
    work(session, 12)
    fork = session.fork("fork")
    fork.append(Block.user("another way " * 50), Block.assistant("yes"))

    done = cutbank.replay(fork, **PI, lineage="what-if")

    assert len(done.calls) == 13
    assert done.compactions[0].boundary.after < session.position
    assert fork.view(lineage="what-if").boundary is not None
    assert verify(store).violations == []


# Who writes


class Fails:
    """A summarizer whose drafts are no use."""

    name = "fails"

    def summarize(self, _: Material) -> Draft:
        raise SummarizerFailedError("out of ink")


def test_where_a_summarizer_fails_the_usual_one_writes(session: StoredSession) -> None:
    work(session, 30)
    recording = read_recording(session)
    terms = CompactionTerms(Pi(keep_tokens=300, reserve_tokens=300), LIMIT)

    write = make_summary_writer(recording, SummaryChain((Fails(),)))
    decider = PolicyDecider(terms, recording, write)
    calls = [sent for sent, _ in replay_recording(recording, decider, limit=LIMIT)]

    compactions = [one for sent in calls for one in sent.compactions]
    assert len(compactions) > 1
    for one in compactions:
        assert one.summary
        assert one.summary.summarizer == "extractive"
        assert one.refused_drafts == ("fails: out of ink",)


def test_the_record_is_told_as_it_was(session: StoredSession) -> None:
    work(session, 10)
    session.compact(Pi(keep_tokens=300, reserve_tokens=300), limit=LIMIT)
    session.append(Block.user("and now?"))
    session.append(Block.assistant("this"))

    done = cutbank.replay(session, "recorded")

    (one,) = done.compactions
    assert one.boundary == session.view().boundary
    assert done.calls[-1].compactions == (one,)
