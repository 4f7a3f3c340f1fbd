"""What several documents claim alike of the store and the loop, tried with the policy of each."""

from collections.abc import Iterator
from typing import Any

import pytest
from agent_talk import TOO_LONG, full

import cutbank
from cutbank import Block, LoopOptions, SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.ranges import Ranges

LIMIT = 8_000
POLICIES: dict[str, dict[str, Any]] = {
    "kdcube": {},
    "qbit": {"reserved_system_tokens": 0, "reserved_response_tokens": 0},
    "tunacode": {"keep_recent_tokens": 2_000, "reserve_tokens": 1_000},
    "klaude-code": {},
    "claude-sdk": {"max_output_tokens": 0},
}
"""The policy of each document, with settings that suit a limit of 8,000."""


def sessions(store: SessionStore) -> Iterator[tuple[dict[str, Any], StoredSession]]:
    """A full session for each policy, and how its loop is asked for."""
    for policy, settings in POLICIES.items():
        options = LoopOptions(settings=settings)
        yield {"policy": policy, "options": options}, full(store.session(policy))


@pytest.mark.claim("S0.4", "S0.39", "S1.39", "S2.22")
def test_a_store_that_is_opened_again_serves_what_was_served(database: str) -> None:
    with cutbank.open(database) as store:
        served = {one.key: one.loop(**how, limit=LIMIT).prepare() for how, one in sessions(store)}

    with cutbank.open(database) as store:
        for policy, view in served.items():
            session = store.session(policy)
            again = session.view()
            assert view.boundary is not None, policy
            assert again == view, policy
            assert again.fingerprint == view.fingerprint, policy
            session.append(Block.assistant("done"), Block.user("next"))
            later = session.view()
            assert later.summary == view.summary, policy
            assert later.entries[: len(view.entries)] == view.entries, policy
            assert [entry.text for entry in later.entries[-2:]] == ["done", "next"], policy
        assert verify(store).violations == []


@pytest.mark.claim("S0.3", "S0.8", "S0.10", "S0.11", "S0.41", "S2.3", "S2.25", "S2.31", "S3.16")
def test_a_compaction_stands_beside_the_log_and_what_left_can_be_recalled(
    store: SessionStore,
) -> None:
    for how, session in sessions(store):
        before, position = session.view(), session.position
        events = store.events.recorder.select_events(session.log.id)
        everything = session.recall(Ranges.span(1, position))

        view = session.loop(**how, limit=LIMIT).prepare()

        assert view.boundary is not None, how
        assert view.summary is not None, how
        assert session.position == position, how
        assert store.events.recorder.select_events(session.log.id) == events, how
        assert session.recall(Ranges.span(1, position)) == everything, how
        assert view.summary.originator_id != session.log.id, how
        stay = {entry.position for entry in view.entries}
        left = [entry for entry in before.entries if entry.position not in stay]
        assert left, how
        assert all(entry.position in view.summary.covers for entry in left), how
        assert view.entries == tuple(e for e in before.entries if e.position in stay), how


@pytest.mark.claim("S0.5", "S0.6", "S2.35", "S3.15")
def test_a_refused_request_is_compacted_and_sent_once_more(store: SessionStore) -> None:
    for how, session in sessions(store):
        # By the limit that the agent knows, nothing needs to leave.
        loop = session.loop(**how, limit=200_000)
        first = loop.prepare()

        second = loop.handle_overflow(TOO_LONG)

        assert first.boundary is None, how
        assert second.boundary is not None, how
        assert second.boundary.trigger is Trigger.OVERFLOW, how
        assert second.tokens < first.tokens, how
        assert second.entries[-1].text == "and now?", how
