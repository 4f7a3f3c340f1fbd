"""A replay decides what an agent's loop decided, and shows what it served."""

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar

import pytest
from every_policy import every_name, fitted
from hypothesis import given, settings
from hypothesis import strategies as st
from opened_stores import store_of
from worked_live import STEPS, at_work, essence, live_blocks

from cutbank import Block, HistoryView, Ranges, StoredSession, ToolCall, ToolResult, verify
from cutbank.adapters.analysis.deciders import make_summary_writer
from cutbank.adapters.analysis.run_replay import (
    read_decisions,
    read_recording,
    store_decisions,
)
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.domain.compaction import MAIN_LINEAGE
from cutbank.domain.compaction_events import CompactionFailed, Trigger
from cutbank.domain.compaction_terms import CompactionTerms, PinRules
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.event import Event
from cutbank.domain.item import WindowItem, order_for_view
from cutbank.domain.policies.policy import Policy, is_due
from cutbank.domain.window import Plan, Window
from cutbank.projections.policy_decider import PolicyDecider, WriteSummary
from cutbank.projections.recording import RecordedCall, Recording
from cutbank.projections.replay import (
    RecordedDecider,
    ReplayDecision,
    ReplayRun,
    collect_segments,
    replay_recording,
)
from cutbank.projections.replay_fold import ReplayFold

Steps = list[tuple[Any, ...]]
LAST: Steps = [("work", [], True)]
LIMITS = st.sampled_from((150, 400, 1_000, 2_500))
LIMIT = 600
NAMES = st.sampled_from(every_name())
position = attrgetter("position")


def recorded(steps: Steps, limit: int = 2_000) -> Recording:
    with at_work("pi", limit) as agent:
        agent.do(steps)
        return read_recording(agent.session)


def by_rules(recording: Recording) -> WriteSummary:
    return make_summary_writer(recording, SummaryChain())


def decider_of(name: str, recording: Recording, limit: int = LIMIT, **more: Any) -> PolicyDecider:
    terms = CompactionTerms(fitted(name, limit), limit)
    return PolicyDecider(terms, recording, by_rules(recording), **more)


def views_of(recording: Recording, decider: PolicyDecider, limit: int) -> list[HistoryView]:
    return [fold.make_view() for _, fold in replay_recording(recording, decider, limit=limit)]


# What is decided


@pytest.mark.slow
@pytest.mark.parametrize("name", every_name())
@settings(max_examples=12)
@given(steps=STEPS, limit=LIMITS, pins=st.booleans(), gain=st.sampled_from((0.0, 0.1, 0.4)))
def test_a_replay_decides_as_the_loop_did(
    name: str, steps: Steps, limit: int, pins: bool, gain: float
) -> None:
    with at_work(name, limit, gain=gain, pins=PinRules(first_prompt=pins)) as agent:
        agent.do([*steps, *LAST])
        recording = read_recording(agent.session)

        decider = PolicyDecider(agent.loop.request, recording, by_rules(recording))
        views = views_of(recording, decider, limit)

        blocks = live_blocks(agent.session)
        assert len(views) == len(agent.sent)
        for view, sent in zip(views, agent.sent, strict=True):
            assert essence(view, blocks) == essence(sent, blocks)
        if not agent.forks:  # a fork's own lineage does not say what came to nothing before it
            live = read_decisions(agent.session, MAIN_LINEAGE)
            assert came_to_nothing(decider.events, blocks) == came_to_nothing(live, blocks)


def came_to_nothing(decisions: list[Event], blocks: Ranges) -> list[int]:
    """Where a compaction was tried in vain, by the newest block that there was."""
    return [
        max((at for at in blocks if at <= one.after), default=0)
        for one in decisions
        if isinstance(one, CompactionFailed) and one.after
    ]


# What is shown


@pytest.mark.slow
@settings(max_examples=60)
@given(name=NAMES, steps=STEPS, limit=LIMITS, served=LIMITS)
def test_a_stored_what_if_shows_at_each_call_what_the_replay_said(
    name: str, steps: Steps, limit: int, served: int
) -> None:
    with at_work("pi", served) as agent:
        agent.do([*steps, *LAST])
        recording = read_recording(agent.session)
        decider = decider_of(name, recording, limit, lineage="what if")

        calls = replay_recording(recording, decider, limit=limit, lineage="what if")
        said = {one.call.last_seen_position: fold.make_view() for one, fold in calls}
        store_decisions(agent.session, "what if", decider.events)

        assert not verify(store_of(agent.session)).violations
        for at, view in said.items():
            shown = agent.session.view(lineage="what if", at=at)
            assert (shown.boundary, shown.effective_from) == (view.boundary, view.effective_from)
            check_same_prompt(shown, view)


@settings(max_examples=12)
@given(steps=STEPS, name=NAMES, limit=LIMITS, usage=st.sampled_from((None, 0.5, 3.0)))
def test_what_was_served_is_shown_again_as_it_was_sent(
    name: str, steps: Steps, limit: int, usage: float | None
) -> None:
    with at_work(name, limit, usage=usage) as agent:
        agent.do([*steps, *LAST])
        recording = read_recording(agent.session)
        decider = RecordedDecider(read_decisions(agent.session, MAIN_LINEAGE), MAIN_LINEAGE)

        views = [fold.make_view() for _, fold in replay_recording(recording, decider)]

        for view, sent in zip(views, agent.sent, strict=True):
            check_same_prompt(view, sent)


def check_same_prompt(view: HistoryView, other: HistoryView) -> None:
    assert (view.entries, view.summary, view.tokens) == (other.entries, other.summary, other.tokens)
    # A summary's digest goes by the database's secret, which a replay does not know.
    assert replace(view, summary_digest=other.summary_digest).fingerprint == other.fingerprint


@settings(max_examples=12)
@given(steps=STEPS, name=NAMES)
def test_a_segment_shows_what_the_views_of_its_calls_show(name: str, steps: Steps) -> None:
    recording = recorded(steps)
    views: list[HistoryView] = []

    def seen(calls: ReplayRun) -> ReplayRun:
        for one, fold in calls:
            views.append(fold.make_view())
            yield one, fold

    decider = decider_of(name, recording)
    _, segments = collect_segments(seen(replay_recording(recording, decider, limit=LIMIT)))

    assert [segment.call for segment in segments[:1]] == [1 for _ in views[:1]]
    assert list(segments) == sorted(segments, key=lambda segment: segment.call)
    for number, view in enumerate(views, 1):
        segment = [segment for segment in segments if segment.call <= number][-1]
        assert segment.summary == (view.summary.text if view.summary else "")
        for entry in view.entries:
            if entry.position <= segment.after:
                assert entry.position in segment.kept
                assert segment.shown.get(entry.position) == entry.shown
        shown = {entry.position for entry in view.entries}
        retracted = {at for at in segment.kept if at <= max(shown, default=0)} - shown
        # What a segment keeps and a view does not have was taken back since.
        assert all(not view.summary or at not in view.summary.covers for at in retracted)


# What a policy is shown


class Looking(PolicyDecider):
    """Looks at the items before each decision and after it."""

    def decide(self, fold: ReplayFold, call: RecordedCall) -> list[ReplayDecision]:
        check_items(fold)
        # Results kept from earlier windows change nothing, and neither do calls that were left out.
        window = self._make_window(fold, replace(self.terms, trigger=Trigger.THRESHOLD))
        due = would(self.terms.policy, replace(window, memo={}))
        assert would(self.terms.policy, window) == due
        assert self._is_due(fold, call) == due
        decided = super().decide(fold, call)
        check_items(fold)
        return decided


def would(policy: Policy, window: Window) -> bool:
    """Whether the policy would compact, be there something to gain or not."""
    try:
        return is_due(policy, window)
    except NothingToCompactError:
        return True


def check_items(fold: ReplayFold) -> None:
    items, history = fold.list_items(), fold.history
    standing = sorted((i for i in items if i.position in history.entries), key=position)
    turns = {item.position: item.turn for item in items}

    assert list(items) == order_for_view(sorted(items, key=position))
    assert {item.position for item in items} >= set(history.entries)
    assert all(item.is_pinned for item in items if item.position not in history.entries)
    for item, entry in zip(standing, history.entries.values(), strict=True):
        assert item == WindowItem(
            entry.position,
            entry.block,
            entry.turn if item.behind is None else turns[entry.call or 0],
            entry.tokens,
            entry.call,
            is_open=entry.position in history.open_calls,
            is_pinned=entry.position in history.pinned,
            is_unfinished=item.is_unfinished,
            length=None if entry.shown is None else len(entry.shown),
            behind=item.behind,
        )
        assert history.broken_off or not item.is_unfinished


@settings(max_examples=12)
@given(steps=STEPS, name=NAMES)
def test_a_policy_is_always_shown_the_view_as_it_stands(name: str, steps: Steps) -> None:
    recording = recorded(steps)

    decider = Looking(CompactionTerms(fitted(name, LIMIT), LIMIT), recording, by_rules(recording))

    assert len(views_of(recording, decider, LIMIT)) == len(recording.calls)


@dataclass(init=False)
class Drops:
    """A policy that drops these blocks, and cuts nothing; it has no settings."""

    name: ClassVar[str] = "drops"

    def __init__(self, positions: Ranges) -> None:
        self._positions = positions

    def plan(self, _: Window) -> Plan:
        return Plan(None, "the test wants it", 0, drops=self._positions)


def test_a_late_result_stands_beside_its_carried_call_before_a_block_pinned_since(
    session: StoredSession,
) -> None:
    session.append(Block.user("look"), ToolCall(tool_call_id="c", name="ls", message_id="m"))
    later = session.append(Block.user("and there? " * 400)).last
    session.compact(Drops(Ranges.of([later])), limit=2_000)
    boundary = session.view().boundary
    assert boundary
    compacted_at = session.position
    session.pin(later)
    pinned_at = session.position
    result = session.append(ToolResult(tool_call_id="c", content="found")).last
    fold = ReplayFold(read_recording(session), MAIN_LINEAGE)
    fold.advance(compacted_at)
    fold.boundaries[boundary.originator_version] = boundary, session.view().summary
    fold.serve(boundary.originator_version, boundary.originator_version)

    fold.advance(pinned_at)
    assert later in {item.position for item in fold.list_items()}
    fold.advance(result)

    check_items(fold)
    assert [item.position for item in fold.list_items()][-2:] == [result, later]
