"""How fast sessions are replayed: block by block in full, and by tokens alone from the store."""

import gc
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import islice
from statistics import median
from time import process_time

from cutbank import SessionStore, StoredSession
from cutbank.adapters.analysis.replaying.recordings import read_recording
from cutbank.adapters.analysis.replaying.traces import read_session_trace
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.compaction_terms import CompactionTerms
from cutbank.domain.pins import PinRules
from cutbank.domain.policies.catalog import build_policy
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.simple_summarizers import SizedSummarizer
from cutbank.projections.replay.policy_decider import PolicyDecider
from cutbank.projections.replay.recording import Recording
from cutbank.projections.replay.replay import replay_recording
from cutbank.projections.replay.replay_writers import ReplayWriters
from cutbank.projections.replay.token_replay import TokenReplay, replay_by_tokens
from cutbank.projections.replay.trace import SessionTrace

from .figure import Figure, Found, Options
from .workload import as_block, turns

IN_FULL = ("reserve-headroom", "pi", "preserve-zone", "retention-window", "scored-pruning")
LEAST_IN_FULL, LEAST_BY_TOKENS = 100_000, 1_000_000
LIMIT, SUMMARY = 200_000, 2_000
BY_TOKENS = (("reserve-headroom", LIMIT), ("pi", LIMIT), ("pi", 64_000))
"""With limits far apart and close together: a replay by tokens takes its time for boundaries. Where
a view has to be made to fit, the default policy needs a full replay."""
SETTINGS = 100
"""Limits that are tried on one trace."""


def replays(options: Options) -> Found:
    """Of the turns that everything is measured with, by the time of one processor."""
    rounds = 3
    with open_store(options.folder / "replays.db", synchronous="NORMAL") as store:
        session = told(store, 700 if options.smoke else 10_000)
        recording = read_recording(session)
        extractive = ExtractiveSummarizer()
        gc.collect()
        gc.freeze()
        for name in IN_FULL:
            for who, writers in (
                ("sized", ReplayWriters((SizedSummarizer(SUMMARY),))),
                ("extractive", ReplayWriters((extractive,))),
            ):
                each = partial(in_full, recording, name, writers)
                speed = recording.blocks / taken(each, rounds if who == "sized" else 1)
                met = speed >= LEAST_IN_FULL if who == "sized" else None
                target = f">= {LEAST_IN_FULL:,}" if met is not None else ""
                what = f"{name} replayed, {who} summaries"
                yield Figure(what, "blocks/s", speed, target=target, met=met)
        yield from by_tokens(session, len(recording.log), rounds)
        gc.unfreeze()


def by_tokens(session: StoredSession, events: int, rounds: int) -> Found:
    """From the store to what a policy comes to; the first time all events are read."""
    begun = process_time()
    trace = read_session_trace(session)
    assert isinstance(trace, SessionTrace)
    yield Figure("a trace is first made", "events/s", events / (process_time() - begun))
    columns = events / taken(partial(selected, session), rounds)
    for name, limit in BY_TOKENS:
        speed = events / taken(partial(from_store, session, name, limit), rounds)
        met = speed >= LEAST_BY_TOKENS
        yield Figure(
            f"{name} at {limit:,} by tokens, from the store; raw: its columns by SQL",
            "events/s",
            speed,
            columns,
            speed / columns,
            target=f">= {LEAST_BY_TOKENS:,}",
            met=met,
        )
    speed = SETTINGS * events / taken(partial(grid, trace), rounds)
    yield Figure(f"{SETTINGS} limits over one trace", "events/s", speed)


def taken(act: Callable[[], object], rounds: int) -> float:
    """Seconds of the processor, the median."""
    times: list[float] = []
    for _ in range(rounds):
        begun = process_time()
        act()
        times.append(process_time() - begun)
    return max(median(times), 1e-6)


def told(store: SessionStore, blocks: int) -> StoredSession:
    """Turns as everywhere, in transactions of many."""
    session = store.session("turns")
    pieces = (as_block(piece) for turn in turns(seed=8) for piece in turn)
    while blocks > 0:
        some = list(islice(pieces, min(blocks, 1_000)))
        blocks -= len(some)
        session.append(*some)
    return session


def in_full(recording: Recording, name: str, writers: ReplayWriters) -> None:
    terms = CompactionTerms(build_policy(name, {}), limit=LIMIT, pins=PinRules())
    decider = PolicyDecider(terms, recording, writers)
    assert sum(served.tokens > 0 for served in replay_recording(recording, decider, limit=LIMIT))


def from_store(session: StoredSession, name: str, limit: int) -> None:
    trace = read_session_trace(session)
    assert isinstance(trace, SessionTrace)
    replay = replay_by_tokens(trace, build_policy(name, {}), limit, SUMMARY, pins=PinRules())
    assert isinstance(replay, TokenReplay)
    assert replay.prompt_tokens > 0


def grid(trace: SessionTrace) -> None:
    policy = build_policy("pi", {})
    for limit in range(LIMIT, LIMIT + 1_000 * SETTINGS, 1_000):
        assert isinstance(replay_by_tokens(trace, policy, limit, SUMMARY), TokenReplay)


def selected(session: StoredSession) -> None:
    """What by hand would be read of each event."""
    with closing(sqlite3.connect(session.log.context.name)) as connection:
        rows = connection.execute(
            "SELECT originator_version, topic, tokens FROM stored_events"
            " WHERE originator_id = ? ORDER BY originator_version",
            (session.log.id.bytes,),
        ).fetchall()
    assert rows
