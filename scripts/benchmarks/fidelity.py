"""How fast the facts of a session are read, and how fast what a policy sent is scored."""

import gc
from collections.abc import Sequence
from functools import partial
from statistics import median

from cutbank.adapters.analysis.backtest.worker import COLLECT_AFTER
from cutbank.adapters.analysis.replaying.recordings import recording_of
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.compaction_terms import Terms
from cutbank.domain.fidelity.canonical_boundaries import canonical, own_boundaries
from cutbank.domain.fidelity.fidelity_measure import Measure
from cutbank.domain.fidelity.rows import Rows
from cutbank.domain.fidelity.segments import WHOLE, Spell
from cutbank.domain.fidelity.session_reading import Reading
from cutbank.domain.fidelity.upper_bound import own_bound
from cutbank.domain.fidelity.visibility import Sights
from cutbank.domain.pins import PinRules
from cutbank.domain.policies.catalog import policy_named
from cutbank.projections.replay.policy_decider import ByPolicy
from cutbank.projections.replay.recorded_rows import rows_of
from cutbank.projections.replay.recording import Recording
from cutbank.projections.replay.replay import replayed
from cutbank.projections.replay.replay_segments import spells_of
from cutbank.projections.replay.replay_writers import Writers

from .figure import Figure, Found, Options
from .replays import taken, told

LEAST = 100_000
POLICY, LIMIT = "reserve-headroom", 32_000
ROUNDS = 3


def fidelity(options: Options) -> Found:
    """Of the turns that everything is measured with, by the time of one processor."""
    with open_store(options.folder / "fidelity.db", synchronous="NORMAL") as store:
        recording = recording_of(told(store, 700 if options.smoke else 2_000))
        rows, spells = rows_of(recording), sent(recording)
    gc.collect()
    gc.freeze()
    usual = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER)  # as the processes of a backtest do
    reading_s = taken(partial(Reading, rows), ROUNDS)
    known: list[float] = []
    new: list[float] = []
    for _ in range(ROUNDS):
        reading = Reading(rows)
        measure = Measure(reading, canonical(reading, LIMIT))
        cell(measure, [WHOLE])  # what all cells of a session have in common
        for times in (new, known):
            times.append(taken(partial(cell, measure, spells), 1))
    gc.set_threshold(*usual)
    gc.unfreeze()
    yield speed("facts of a session are read", rows, reading_s)
    megabytes = sum(len(row.text) for row in rows.rows) / 1e6
    yield Figure("facts of a session are read", "MB/s", megabytes / reading_s)
    yield speed(f"{POLICY} scored, texts read before", rows, median(known))
    yield speed(f"{POLICY} scored, {len(spells)} new summaries", rows, median(new))


def speed(what: str, rows: Rows, seconds: float) -> Figure:
    found = len(rows.rows) / seconds
    return Figure(what, "blocks/s", found, target=f">= {LEAST:,}", met=found >= LEAST)


def sent(recording: Recording) -> tuple[Spell, ...]:
    """What a policy would have sent, with summaries by rules."""
    terms = Terms(policy_named(POLICY, {}), limit=LIMIT, pins=PinRules())
    return spells_of(replayed(recording, ByPolicy(terms, recording, Writers()), limit=LIMIT))


def cell(measure: Measure, spells: Sequence[Spell]) -> None:
    """All that a backtest has of it: on boundaries that all share, and on its own."""
    sights = Sights(measure.reading, spells)
    own = Measure(measure.reading, own_boundaries(spells))
    assert measure.scores(sights).boundaries
    own.scores(sights)
    own_bound(own, sights)
    measure.lost(sights)
