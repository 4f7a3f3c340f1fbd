"""What is counted and measured, and by which few words."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from telemetry_seen import Seen

import cutbank
from cutbank import StoredSession
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.idle.notices import About, Notice
from cutbank.adapters.runtime.telemetry.activation import hear
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import StorageError
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.summarizer import Draft, Material

WHY = {"cutbank.trigger": "manual", "cutbank.policy": "reserve-headroom"}
DRAFT = Draft("A summary.", model="small", usage=Usage(input=900, output=50), cost_usd=0.002)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOTICE = Notice(About.LOOKED, worker="w", at=NOW, session="secret", namespace="secret")


class Writes:
    name = "writes"

    def __init__(self, draft: Draft = DRAFT) -> None:
        self.draft = draft

    def summarise(self, material: Material) -> Draft:
        return self.draft


class Fails:
    name = "fails"

    def summarise(self, material: Material) -> Draft:
        raise ValueError


@pytest.fixture
def policy() -> ReserveHeadroom:
    return ReserveHeadroom(reserve_tokens=7_000, keep_tokens=500)


def test_compactions_are_counted_by_what_set_them_off_and_became_of_them(
    talk: StoredSession, policy: ReserveHeadroom, seen: Seen
) -> None:
    done = talk.compact(policy, limit=8_000)
    talk.compact(policy, limit=80_000, trigger=Trigger.THRESHOLD)

    measured = seen.measured()
    assert measured["cutbank.compaction.duration"] == [
        (WHY | {"cutbank.compaction.outcome": "compacted"}, 1),
        (
            WHY | {"cutbank.trigger": "threshold", "cutbank.compaction.outcome": "no_need"},
            1,
        ),
    ]
    assert measured["cutbank.compaction.tokens_saved"] == [
        (WHY, done.pre_tokens - done.post_tokens)
    ]


def test_what_drafts_took_is_counted_whether_they_were_taken_or_not(
    talk: StoredSession, policy: ReserveHeadroom, seen: Seen
) -> None:
    refused = Writes(replace(DRAFT, was_truncated=True))
    refused.name = "breaks off"
    chain = SummaryChain((Fails(), refused, Writes()))

    talk.compact(policy, limit=8_000, chain=chain)

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


def test_a_measured_duration_leads_to_its_span(
    talk: StoredSession, policy: ReserveHeadroom, seen: Seen
) -> None:
    talk.compact(policy, limit=8_000)

    compaction, summary = (span.context.span_id for span in seen.spans if span.context)
    examples = seen.examples()
    assert ("cutbank.compaction.duration", compaction) in examples
    assert ("cutbank.summary.duration", summary) in examples


def test_how_long_an_agent_waits_is_measured_by_what_it_waited_for(
    store: cutbank.SessionStore, talk: StoredSession, policy: ReserveHeadroom, seen: Seen
) -> None:
    loop = talk.loop(policy=policy, limit=8_000)
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


def test_an_idle_worker_says_what_is_due_now_and_when_the_next_is(seen: Seen) -> None:
    hear(replace(NOTICE, due=7, running=2, next_at=NOW + timedelta(seconds=90)))
    hear(replace(NOTICE, due=5, running=3, next_at=NOW - timedelta(seconds=1)))

    assert seen.measured() == {
        "cutbank.idle.due": [({}, 5)],
        "cutbank.idle.looks": [({}, 2)],
        "cutbank.idle.next_due": [({}, 0)],
    }


def test_what_became_of_due_sessions_is_counted(seen: Seen) -> None:
    for about in (About.DONE, About.DONE, About.PASSED_OVER, About.FAILED, About.LOST):
        hear(replace(NOTICE, about=About.BEGAN))
        hear(replace(NOTICE, about=about, reason="secret", next_at=NOW))
    hear(replace(NOTICE, about=About.BEGAN))

    assert seen.measured() == {
        "cutbank.idle.running": [({}, 1)],
        "cutbank.idle.sessions": [
            ({"cutbank.idle.outcome": "done"}, 2),
            ({"cutbank.idle.outcome": "passed_over"}, 1),
            ({"cutbank.idle.outcome": "failed"}, 1),
            ({"cutbank.idle.outcome": "lost"}, 1),
        ],
    }


def test_chores_and_what_keeps_a_worker_from_its_work_are_counted(seen: Seen) -> None:
    hear(replace(NOTICE, about=About.CHORE_DONE, chore="vacuum"))
    hear(replace(NOTICE, about=About.CHORE_FAILED, chore="backup"))
    hear(replace(NOTICE, about=About.DATABASE_AWAY))

    assert seen.measured() == {
        "cutbank.idle.chores": [
            ({"cutbank.idle.chore": "vacuum", "cutbank.idle.outcome": "done"}, 1),
            ({"cutbank.idle.chore": "backup", "cutbank.idle.outcome": "failed"}, 1),
        ],
        "cutbank.idle.incidents": [({"cutbank.idle.incident": "database_away"}, 1)],
    }


def test_each_notice_can_be_heard_and_names_no_session(seen: Seen) -> None:
    for about in About:
        hear(replace(NOTICE, about=about, due=1, running=1, next_at=NOW, chore="vacuum"))

    assert "secret" not in str(seen.measured())
