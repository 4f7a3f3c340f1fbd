"""How fast the facts of a session are read, and how fast what a policy sent is scored."""

import gc
from collections.abc import Sequence
from functools import partial
from statistics import median

from cutbank.adapters.analysis.backtest.worker import COLLECT_AFTER_BLOCKS
from cutbank.adapters.analysis.replaying.recordings import read_recording
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.adapters.settings.policy_catalog import get_policy
from cutbank.domain.compaction_terms import CompactionTerms, PinRules
from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure, compute_own_bound
from cutbank.domain.fidelity.later_references import (
    find_canonical_boundaries,
    list_own_boundaries,
)
from cutbank.domain.fidelity.rows import WHOLE_HISTORY, SessionRows, ViewSegment
from cutbank.domain.fidelity.session_reading import SessionReading
from cutbank.domain.fidelity.visibility import SessionVisibility
from cutbank.projections.replay.policy_decider import PolicyDecider
from cutbank.projections.replay.recorded_rows import make_session_rows
from cutbank.projections.replay.recording import Recording
from cutbank.projections.replay.replay import collect_segments, replay_recording
from cutbank.projections.replay.replay_writers import ReplayWriters

from .figure import Figure, Found, Options
from .replays import taken, told

LEAST = 100_000
POLICY, LIMIT = "reserve-headroom", 32_000
ROUNDS = 3


def fidelity(options: Options) -> Found:
    """Of the turns that everything is measured with, by the time of one processor."""
    with open_store(options.folder / "fidelity.db", synchronous="NORMAL") as store:
        recording = read_recording(told(store, 700 if options.smoke else 2_000))
        rows, spells = make_session_rows(recording), sent(recording)
    gc.collect()
    gc.freeze()
    usual = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER_BLOCKS)  # as the processes of a backtest do
    reading_s = taken(partial(SessionReading, rows), ROUNDS)
    known: list[float] = []
    new: list[float] = []
    for _ in range(ROUNDS):
        reading = SessionReading(rows)
        measure = FidelityMeasure(reading, find_canonical_boundaries(reading, LIMIT))
        cell(measure, [WHOLE_HISTORY])  # what all cells of a session have in common
        for times in (new, known):
            times.append(taken(partial(cell, measure, spells), 1))
    gc.set_threshold(*usual)
    gc.unfreeze()
    yield speed("facts of a session are read", rows, reading_s)
    megabytes = sum(len(row.text) for row in rows.rows) / 1e6
    yield Figure("facts of a session are read", "MB/s", megabytes / reading_s)
    yield speed(f"{POLICY} scored, texts read before", rows, median(known))
    yield speed(f"{POLICY} scored, {len(spells)} new summaries", rows, median(new))


def speed(what: str, rows: SessionRows, seconds: float) -> Figure:
    found = len(rows.rows) / seconds
    return Figure(what, "blocks/s", found, target=f">= {LEAST:,}", met=found >= LEAST)


def sent(recording: Recording) -> tuple[ViewSegment, ...]:
    """What a policy would have sent, with summaries by rules."""
    terms = CompactionTerms(get_policy(POLICY), limit=LIMIT, pins=PinRules())
    decider = PolicyDecider(terms, recording, ReplayWriters())
    return collect_segments(replay_recording(recording, decider, limit=LIMIT))[1]


def cell(measure: FidelityMeasure, spells: Sequence[ViewSegment]) -> None:
    """All that a backtest has of it: on boundaries that all share, and on its own."""
    sights = SessionVisibility(measure.reading, spells)
    own = FidelityMeasure(measure.reading, list_own_boundaries(spells))
    assert measure.score(sights).boundaries
    own.score(sights)
    compute_own_bound(own, sights)
    measure.find_lost(sights)
