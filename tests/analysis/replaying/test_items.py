"""What a policy is shown of a replay is what stands in the view, whatever was remembered of it."""

from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from every_policy import every_name, fitted
from hypothesis import given, settings
from hypothesis import strategies as st
from worked_live import STEPS, Agent, Time

import cutbank
from cutbank import Block, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.replaying.recordings import read_recording
from cutbank.adapters.settings.policy_catalog import get_policy
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.compaction_terms import CompactionTerms
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.item import Item, order_for_view
from cutbank.domain.policies.policy import Policy, is_due
from cutbank.domain.window import Window
from cutbank.projections.replay.policy_decider import PolicyDecider
from cutbank.projections.replay.recording import RecordedCall
from cutbank.projections.replay.replay import ReplayDecision, replay_recording
from cutbank.projections.replay.replay_fold import ReplayFold

LIMIT = 600
position = attrgetter("position")


class Looking(PolicyDecider):
    """Looks at the items before each decision and after it."""

    def decide(self, fold: ReplayFold, call: RecordedCall) -> list[ReplayDecision]:
        check(fold)
        self.check_asking(fold, call)
        decided = super().decide(fold, call)
        check(fold)
        return decided

    def check_asking(self, fold: ReplayFold, call: RecordedCall) -> None:
        """What was worked out of earlier windows changes nothing, nor that nobody was asked."""
        window = self._make_window(fold, Trigger.THRESHOLD)
        due = would(self.terms.policy, replace(window, memo={}))

        assert would(self.terms.policy, window) == due
        assert self._is_due(fold, call) == due


def would(policy: Policy, window: Window) -> bool:
    """Whether the policy would compact, be there something to gain or not."""
    try:
        return is_due(policy, window)
    except NothingToCompactError:
        return True


def check(fold: ReplayFold) -> None:
    items, history = fold.list_items(), fold.history
    standing = sorted((i for i in items if i.position in history.entries), key=position)
    turns = {item.position: item.turn for item in items}

    assert list(items) == order_for_view(sorted(items, key=position))
    assert {item.position for item in items} >= set(history.entries)
    assert all(item.is_pinned for item in items if item.position not in history.entries)
    for item, entry in zip(standing, history.entries.values(), strict=True):
        assert item == Item(
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
@given(steps=STEPS, name=st.sampled_from(every_name()))
def test_a_policy_is_always_shown_the_view_as_it_stands(
    name: str, steps: list[tuple[Any, ...]]
) -> None:
    time = Time()
    with (
        TemporaryDirectory() as folder,
        cutbank.open(Path(folder) / "live.db", clock=time, settings=Settings()) as store,
    ):
        agent = Agent(store.session("live"), {"policy": fitted("pi", 2_000), "limit": 2_000}, time)
        agent.do(steps)
        recording = read_recording(agent.session)

    decider = Looking(CompactionTerms(fitted(name, LIMIT), LIMIT), recording)
    calls = list(replay_recording(recording, decider, limit=LIMIT))

    assert len(calls) == len(recording.calls)


def test_results_of_a_view_that_begins_anew_are_looked_at_anew(session: StoredSession) -> None:
    for number in range(30):
        call = str(number)
        session.append(Block.user("look " * 50))
        session.append(ToolCall(tool_call_id=call, name="ls", arguments="{}"))
        session.append(ToolResult(tool_call_id=call, content="found " * 100))
    recording = read_recording(session)
    often = {"prune_over": 100, "prune_to": 10, "preserve_recent": 2, "max_output_tokens": 0}

    decider = Looking(CompactionTerms(get_policy("preserve-zone", **often), 100_000), recording)
    drawn = [one for call in replay_recording(recording, decider) for one in call.compactions]

    assert 2 < len(drawn) < len(recording.calls) - 2
    assert all(one.boundary.trims for one in drawn)


def test_a_result_that_was_shortened_is_shown_as_short_as_it_is(session: StoredSession) -> None:
    session.append(Block.user("look"))
    session.append(ToolCall(tool_call_id="c", name="ls", arguments="{}"))
    session.append(ToolResult(tool_call_id="c", content="found " * 4_000))
    session.append(Block.assistant("that is a lot"), Block.user("and now?"))
    session.append(Block.assistant("nothing more"))
    recording = read_recording(session)

    decider = Looking(CompactionTerms(fitted("pi", LIMIT), LIMIT), recording)
    drawn = [
        one
        for call in replay_recording(recording, decider, limit=LIMIT)
        for one in call.compactions
    ]

    assert any(one.boundary.trims for one in drawn)
