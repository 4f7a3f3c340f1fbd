"""What is counted and measured, and by which few words."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from clock import Clock
from resting import RULES, SETTINGS, pass_time, talk
from telemetry_seen import Branch, Seen

import cutbank
from cutbank import CompactionOptions, SessionStore, StorageError, StoredSession, Trigger, Usage
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice
from cutbank.adapters.runtime.telemetry import record_notice
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.summaries.summarizer import Draft, Material, Summarizer

WHY = {"cutbank.trigger": "manual", "cutbank.policy": "reserve-headroom"}
POLICY = ReserveHeadroom(reserve_tokens=7_000, keep_tokens=500)
DRAFT = Draft("A summary.", model="small", usage=Usage(input=900, output=50), cost_usd=0.002)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOTICE = WorkerNotice(NoticeKind.LOOKED, worker="w", at=NOW, session="secret", namespace="secret")


def writes(name: str, draft: Draft | None) -> Summarizer:
    """Return a summarizer that gives this draft, or fails."""

    def summarize(material: Material) -> Draft:
        if draft is None:
            raise ValueError
        return draft

    return cast("Summarizer", SimpleNamespace(name=name, summarize=summarize))


def test_compactions_are_counted_by_what_set_them_off_and_became_of_them(
    talk: StoredSession, seen: Seen
) -> None:
    done = talk.compact(POLICY, limit=8_000)
    talk.compact(POLICY, limit=80_000, options=CompactionOptions(trigger=Trigger.THRESHOLD))

    unneeded = {"cutbank.trigger": "threshold", "cutbank.compaction.outcome": "no_need"}
    measured = seen.measured()
    assert measured["cutbank.compaction.duration"] == [
        (WHY | {"cutbank.compaction.outcome": "compacted"}, 1),
        (WHY | unneeded, 1),
    ]
    saved = done.pre_tokens - done.post_tokens
    assert measured["cutbank.compaction.tokens_saved"] == [(WHY, saved)]


def test_what_drafts_took_is_counted_whether_they_were_taken_or_not(
    talk: StoredSession, seen: Seen
) -> None:
    cut_off = writes("breaks off", replace(DRAFT, was_truncated=True))
    chain = SummaryChain((writes("fails", None), cut_off, writes("writes", DRAFT)))

    talk.compact(POLICY, limit=8_000, options=CompactionOptions(chain=chain))

    measured = seen.measured()
    off: dict[str, Any] = {"cutbank.summariser": "breaks off", "gen_ai.response.model": "small"}
    on = off | {"cutbank.summariser": "writes"}
    assert measured["cutbank.summary.duration"] == [
        ({"cutbank.summariser": "fails", "cutbank.summary.outcome": "failed"}, 1),
        ({"cutbank.summariser": "breaks off", "cutbank.summary.outcome": "rejected"}, 1),
        ({"cutbank.summariser": "writes", "cutbank.summary.outcome": "accepted"}, 1),
    ]
    assert measured["cutbank.summary.drafts_rejected"] == [
        ({"cutbank.summariser": "breaks off", "cutbank.rule": "truncated"}, 2)
    ]
    assert measured["cutbank.summary.cost"] == [(off, 0.004), (on, 0.002)]
    assert measured["cutbank.summary.tokens"] == [
        (off | {"gen_ai.token.type": "input"}, 1_800),
        (off | {"gen_ai.token.type": "output"}, 100),
        (on | {"gen_ai.token.type": "input"}, 900),
        (on | {"gen_ai.token.type": "output"}, 50),
    ]


def test_how_long_an_agent_waits_is_measured_by_what_it_waited_for(
    store: SessionStore, talk: StoredSession, seen: Seen
) -> None:
    loop = talk.loop(policy=POLICY, limit=8_000)
    for _ in range(3):
        loop.prepare()
    store.close()
    with pytest.raises(StorageError):
        loop.prepare()

    assert seen.measured()["cutbank.prepare.duration"] == [
        ({"cutbank.prepare.outcome": "compacted"}, 1),
        ({"cutbank.prepare.outcome": "served"}, 2),
        ({"cutbank.prepare.outcome": "failed"}, 1),
    ]


def test_what_an_idle_worker_tells_is_counted_and_names_no_session(seen: Seen) -> None:
    record_notice(replace(NOTICE, due=7))
    record_notice(replace(NOTICE, due=5))
    kinds = NoticeKind
    for about in (kinds.DONE, kinds.DONE, kinds.PASSED_OVER, kinds.FAILED, kinds.LOST):
        record_notice(replace(NOTICE, about=about, reason="secret", next_at=NOW))
    record_notice(replace(NOTICE, about=NoticeKind.CHORE_DONE, chore="vacuum"))
    record_notice(replace(NOTICE, about=NoticeKind.CHORE_FAILED, chore="backup"))

    outcome, chore = "cutbank.idle.outcome", "cutbank.idle.chore"
    assert seen.measured() == {
        "cutbank.idle.due": [({}, 5)],
        "cutbank.idle.sessions": [
            ({outcome: "done"}, 2),
            ({outcome: "passed_over"}, 1),
            ({outcome: "failed"}, 1),
            ({outcome: "lost"}, 1),
        ],
        "cutbank.idle.chores": [
            ({chore: "vacuum", outcome: "done"}, 1),
            ({chore: "backup", outcome: "failed"}, 1),
        ],
    }
    for about in NoticeKind:
        record_notice(replace(NOTICE, about=about, due=1, running=1, next_at=NOW, chore="vacuum"))
    assert "secret" not in str(seen.measured())


def test_what_it_does_is_measured_and_each_session_is_a_trace_of_its_own(
    database: str, clock: Clock, seen: Seen
) -> None:
    with cutbank.open(database, clock=clock, settings=SETTINGS) as store:
        for key in ("first", "second"):
            talk(store.session(key))
        pass_time(clock, RULES.idle_time_s)
        worker = IdleWorker(store, RULES)
        with seen.tracers.get_tracer("a scheduler").start_as_current_span("a look"):
            worker.look()
            worker.wait()
            worker.look()
        worker.stop()

    compaction: Branch = ("cutbank.compact", [("cutbank.summarise", [])])
    assert sorted(seen.tree()) == [("a look", []), compaction, compaction]
    assert {one["cutbank.trigger"] for one in seen.named("cutbank.compact")} == {"idle"}
    assert seen.measured()["cutbank.idle.sessions"] == [({"cutbank.idle.outcome": "done"}, 2)]
