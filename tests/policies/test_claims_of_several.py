"""What several documents claim alike of the store and the loop, tried with the policy of each."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from agent_talk import TOO_LONG, Scripted, full, talk

import cutbank
from cutbank import Block, CompactionOptions, Draft, LoopOptions, SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.models.llm_summarizer import LlmSummarizer
from cutbank.adapters.runtime.compaction.from_settings import make_compaction_request
from cutbank.adapters.settings.compaction_settings import SummarySettings
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind, ViewStats
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import ContextOverflowed
from cutbank.projections.rendering.catalog import render_view
from cutbank.projections.rendering.summary_message import parse_summary_message

LIMIT = 8_000
POLICIES: dict[str, dict[str, Any]] = {
    "kdcube": {},
    "qbit": {"reserved_system_tokens": 0, "reserved_response_tokens": 0},
    "tunacode": {"keep_recent_tokens": 2_000, "reserve_tokens": 1_000},
    "klaude-code": {},
    "claude-sdk": {"max_output_tokens": 0},
}
"""The policy of each document, with settings that suit a limit of 8,000."""
SUMMARIZING = [name for name in POLICIES if name != "qbit"]


def sessions(store: SessionStore) -> Iterator[tuple[dict[str, Any], StoredSession]]:
    """A full session for each policy, and how its loop is asked for."""
    for policy, settings in POLICIES.items():
        options = LoopOptions(settings=settings)
        yield {"policy": policy, "options": options}, full(store.session(policy))


def compact(session: StoredSession, says: str) -> None:
    """Compact a session by the policy that it is named after."""
    options = CompactionOptions(
        settings=POLICIES[session.key],
        summarizers=[Scripted(lambda _: Draft(says))],
        instructions="Mind the migrations.",
    )
    session.compact(session.key, limit=LIMIT, options=options)


# The record


@pytest.mark.claim("S0.1", "S0.4", "S0.39", "S1.39", "S2.22")
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


@pytest.mark.claim("S0.3", "S0.8", "S0.10", "S0.11", "S0.41")
@pytest.mark.claim(
    "S2.1", "S2.3", "S2.23", "S2.24", "S2.25", "S2.31", "S2.42", "S2.45", "S2.46", "S2.48"
)
@pytest.mark.claim("S3.16")
def test_a_compaction_stands_beside_the_log_and_what_left_can_be_recalled(
    store: SessionStore,
) -> None:
    for how, session in sessions(store):
        before, position = session.view(), session.position
        assert (before.boundary, before.summary) == (None, None), how
        events = store.events.recorder.select_events(session.log.id)
        everything = session.recall(Ranges.span(1, position))

        options = CompactionOptions(settings=how["options"].settings)
        outcome = session.compact(how["policy"], limit=LIMIT, options=options)

        view = session.view()
        assert view.boundary is not None, how
        assert view.summary is not None, how
        assert session.position == position, how
        assert store.events.recorder.select_events(session.log.id) == events, how
        assert session.recall(Ranges.span(1, position)) == everything, how
        assert view.summary.originator_id != session.log.id, how
        stay = {entry.position for entry in view.entries}
        left = [entry for entry in before.entries if entry.position not in stay]
        assert all(entry.position in view.summary.covers for entry in left), how
        assert view.entries == tuple(e for e in before.entries if e.position in stay), how
        sizes = (view.boundary.pre_tokens, view.boundary.post_tokens)
        assert sizes == (outcome.pre_tokens, outcome.post_tokens), how
        assert outcome.post_tokens < outcome.pre_tokens, how
        assert len(outcome.left) == len(left) > 0, how


@pytest.mark.claim("S2.28", "S2.29", "S2.30", "S3.23", "S3.24", "S3.25")
@pytest.mark.claim("S4.18", "S4.22", "S4.23", "S4.48", "S4.49")
def test_a_view_is_the_last_summary_as_a_users_message_and_what_was_kept_word_for_word(
    store: SessionStore,
) -> None:
    """Ruled: Anthropic has no system messages among the others, so that it is a marked user's."""
    for policy in SUMMARIZING:
        session = full(store.session(policy))
        for says in ("the first summary", "the second summary"):
            before = talk(session, 30).view()
            compact(session, says)
        view = session.view()

        assert view.boundary is not None, policy
        assert view.summary is not None, policy
        kept = [one for one in before.entries if one.position >= view.boundary.first_kept]
        assert list(view.entries) == kept, policy
        assert view.summary.covers == Ranges.span(1, view.boundary.first_kept - 1), policy
        for form in ("anthropic", "openai-chat"):
            first, *rest = render_view(view, form)["messages"]
            assert first["role"] == "user", policy
            content = first["content"]
            text = content if isinstance(content, str) else content[0]["text"]
            read = parse_summary_message(text)
            assert read is not None, policy
            assert read.text == "the second summary", policy
            assert "summary" not in json.dumps(rest), policy
        session.revert()
        session.revert()
        assert session.view().summary is None, policy


# Hooks


@pytest.mark.claim("S0.32", "S0.33", "S0.34", "S0.35", "S0.36", "S0.37")
@pytest.mark.claim("S4.16", "S4.24", "S4.25", "S4.45")
def test_hooks_are_called_before_and_after_with_what_was_saved(
    store: SessionStore, told: list[CompactionEvent]
) -> None:
    """The ruling of 0-a and 0-b: around a compaction, and with the document's four numbers."""
    served: list[bool] = []
    store.listeners.append(
        lambda event: served.append(store.session(event.session).view().boundary is not None)
    )
    for policy in SUMMARIZING:
        session = full(store.session(policy))
        before = session.view()
        told.clear()
        served.clear()

        compact(session, "A summary.")
        view = session.view()
        session.revert()

        kinds = CompactionEventKind
        assert list(zip([event.moment for event in told], served, strict=True)) == [
            (kinds.PRE_COMPACT, False),
            (kinds.REQUESTED, False),
            (kinds.SUMMARIZING, False),
            (kinds.SUMMARIZED, False),
            (kinds.RECORDED, True),
            (kinds.ACTIVATED, True),
            (kinds.SESSION_START, True),
            (kinds.REVERTED, False),
        ], policy
        boundary = view.boundary
        assert boundary is not None, policy
        left = [entry for entry in before.entries if entry.position not in boundary.kept]
        first, last = told[0], told[4]
        assert (first.after, last.before) == (None, first.before), policy
        assert first.before == ViewStats(boundary.pre_tokens, len(before.entries)), policy
        assert last.after == ViewStats(boundary.post_tokens, len(view.entries), summaries=1), policy
        assert first.compacted_blocks == last.compacted_blocks == len(left), policy
        assert told[6].source == "compact", policy


# After a refusal


@pytest.mark.claim("S0.1", "S0.5", "S0.6", "S2.35", "S3.15")
def test_a_refused_request_is_compacted_and_sent_once_more(store: SessionStore) -> None:
    for how, session in sessions(store):
        # By the limit that the agent knows, nothing needs to leave.
        loop = session.loop(**how, limit=200_000, model="claude-sonnet-4-5")
        first = loop.prepare()

        second = loop.handle_overflow(TOO_LONG)

        assert first.boundary is None, how
        assert second.boundary is not None, how
        assert second.boundary.trigger is Trigger.OVERFLOW, how
        assert second.tokens < first.tokens, how
        assert second.entries[-1].text == "and now?", how
        assert loop.request.limit == 8_000, "as the provider says"
        rows = store.events.recorder.select_events(session.log.id)
        recorded = map(store.events.mapper.to_domain_event, rows)
        (overflow,) = [event for event in recorded if isinstance(event, ContextOverflowed)]
        assert overflow.model == "claude-sonnet-4-5", how
        assert overflow.message == "prompt is too long: 9100 tokens > 8000 maximum", how


# Who writes


@pytest.mark.claim("S2.11", "S4.29", "S4.50")
def test_a_cheaper_model_than_the_agents_writes_summaries_or_its_own_where_that_is_set() -> None:
    own = "anthropic:claude-opus-4-5"
    rows: list[tuple[str, str | None, str]] = [
        ("claude-sonnet-4-5-20250929", None, "anthropic:claude-haiku-"),
        ("claude-opus-4-5-20250514", None, "anthropic:claude-haiku-"),
        (own, None, "anthropic:claude-haiku-"),
        ("claude-opus-4-5", own, own),
    ]
    for model, asked, writes in rows:
        settings = Settings(summary=SummarySettings(chain=("llm",), model=asked))

        (writer,) = make_compaction_request(settings, model).chain.summarizers

        assert isinstance(writer, LlmSummarizer), model
        assert str(writer.model).startswith(writes), model
