"""A replay decides what an agent's loop decided, and shows what it served."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from every_policy import every_name, fitted
from hypothesis import given, settings
from hypothesis import strategies as st
from worked_live import STEPS, Agent, Time

import cutbank
from cutbank.adapters.replaying.recordings import recording_of
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.compaction_events import CompactBoundary, Summary
from cutbank.domain.pins import PinRules
from cutbank.domain.ranges import Ranges
from cutbank.projections.history_view import HistoryView
from cutbank.projections.replay.by_policy import ByPolicy
from cutbank.projections.replay.recording import Recording
from cutbank.projections.replay.replay import replayed

LIMITS = st.sampled_from((150, 400, 1_000, 2_500))


def essence(view: HistoryView, blocks: Ranges) -> dict[str, Any]:
    """All that a view shows and all that was decided of it, but for the numbers of decisions.

    What is decided about positions without a block shows nowhere: a refusal that the loop records
    between two boundaries of one request is one.
    """
    return {
        "tokens": view.tokens,
        "system": view.system_prompt,
        "tools": view.tool_definitions,
        "entries": [(entry.position, entry.digest, entry.shown) for entry in view.entries],
        "boundary": view.boundary and drawn(view.boundary, blocks),
        "summary": view.summary and written(view.summary, blocks),
    }


def drawn(boundary: CompactBoundary, blocks: Ranges) -> dict[str, Any]:
    return {
        **boundary.model_dump(
            exclude={
                "originator_id",
                "originator_version",
                "timestamp",
                "previous",
                "after",
                "kept",
            }
        ),
        "kept": boundary.kept & blocks,
        "after": max((at for at in blocks if at <= boundary.after), default=0),
    }


def written(summary: Summary, blocks: Ranges) -> dict[str, Any]:
    return {
        "text": summary.text,
        "sections": summary.sections,
        "digest": summary.digest,
        "covers": summary.covers & blocks,
        "cites": summary.cites,
        "summariser": summary.summariser,
        "tokens": summary.tokens,
    }


def blocks_of(recording: Recording) -> Ranges:
    return Ranges.of(one.position for one in recording.log if one.tokens)


@pytest.mark.parametrize("name", every_name())
@settings(max_examples=20)
@given(steps=STEPS, limit=LIMITS, pins=st.booleans(), gain=st.sampled_from((0.0, 0.1, 0.4)))
def test_a_replay_decides_as_the_loop_did(
    name: str, steps: list[tuple[Any, ...]], limit: int, pins: bool, gain: float
) -> None:
    time = Time()
    given_settings = Settings.model_validate({"compaction": {"minimum_gain": gain}})
    with (
        TemporaryDirectory() as folder,
        cutbank.open(Path(folder) / "live.db", clock=time, settings=given_settings) as store,
    ):
        how = {"policy": fitted(name, limit), "limit": limit, "pins": PinRules(first_prompt=pins)}
        agent = Agent(store.session("live"), how, time)
        agent.do([*steps, ("work", [], True)])
        recording = recording_of(agent.session)

        decider = ByPolicy(agent.loop.order, recording)
        views = [served.view() for served in replayed(recording, decider, limit=limit)]

        blocks = blocks_of(recording)
        assert len(views) == len(agent.sent)
        for view, sent in zip(views, agent.sent, strict=True):
            assert essence(view, blocks) == essence(sent, blocks)
