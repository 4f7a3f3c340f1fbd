"""The spells of a replay say what every view showed."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from every_policy import every_name, fitted
from hypothesis import given, settings
from hypothesis import strategies as st
from worked_live import STEPS, Agent, Time

import cutbank
from cutbank.adapters.analysis.replaying.recordings import read_recording
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.compaction_terms import CompactionTerms
from cutbank.domain.fidelity.rows import WHOLE_HISTORY
from cutbank.projections.history_view import HistoryView
from cutbank.projections.replay.policy_decider import PolicyDecider
from cutbank.projections.replay.recording import Recording
from cutbank.projections.replay.replay import (
    NeverDecider,
    ReplayedCall,
    collect_segments,
    replay_recording,
)

LIMIT = 600


def recorded(steps: list[tuple[Any, ...]]) -> Recording:
    time = Time()
    with (
        TemporaryDirectory() as folder,
        cutbank.open(Path(folder) / "live.db", clock=time, settings=Settings()) as store,
    ):
        agent = Agent(store.session("live"), {"policy": fitted("pi", 2_000), "limit": 2_000}, time)
        agent.do(steps)
        return read_recording(agent.session)


@settings(max_examples=12)
@given(steps=STEPS, name=st.sampled_from(every_name()))
def test_a_spell_shows_what_the_views_of_its_calls_show(
    name: str, steps: list[tuple[Any, ...]]
) -> None:
    recording = recorded(steps)
    views: list[HistoryView] = []

    def seen(calls: Iterator[ReplayedCall]) -> Iterator[ReplayedCall]:
        for one in calls:
            views.append(one.make_view())
            yield one

    decider = PolicyDecider(CompactionTerms(fitted(name, LIMIT), LIMIT), recording)
    spells = collect_segments(seen(replay_recording(recording, decider, limit=LIMIT)))

    assert [spell.call for spell in spells[:1]] == [1 for _ in views[:1]]
    assert list(spells) == sorted(spells, key=lambda spell: spell.call)
    for number, view in enumerate(views, 1):
        spell = [spell for spell in spells if spell.call <= number][-1]
        assert spell.summary == (view.summary.text if view.summary else "")
        assert spell.tokens == (view.summary.tokens if view.summary else 0)
        for entry in view.entries:
            if entry.position <= spell.after:
                assert entry.position in spell.kept
                assert spell.shown.get(entry.position) == entry.shown
        newest = max((entry.position for entry in view.entries), default=0)
        shown = {entry.position for entry in view.entries}
        retracted = {at for at in spell.kept if at <= newest} - shown
        # What a spell keeps and a view does not have was taken back since.
        assert all(not view.summary or at not in view.summary.covers for at in retracted)


@settings(max_examples=4)
@given(steps=STEPS)
def test_a_session_that_nobody_compacts_is_one_whole_spell(steps: list[tuple[Any, ...]]) -> None:
    recording = recorded([*steps, ("work", [], True)])

    assert collect_segments(replay_recording(recording, NeverDecider())) == (WHOLE_HISTORY,)
