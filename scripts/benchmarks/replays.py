"""How fast sessions are replayed, with summaries of a size and with those by rules."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from statistics import median
from time import process_time

from cutbank import SessionStore, StoredSession
from cutbank.adapters.analysis.deciders import make_summary_writer
from cutbank.adapters.analysis.run_replay import read_recording
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.adapters.settings.policy_catalog import get_policy
from cutbank.domain.compaction_terms import CompactionTerms, PinRules
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.summarizer import Draft, Material, Summarizer
from cutbank.domain.token_estimate import CHARS_PER_TOKEN
from cutbank.projections.policy_decider import PolicyDecider
from cutbank.projections.recording import Recording
from cutbank.projections.replay import replay_recording

from .figure import Figure, Found, Options
from .workload import as_block, turns

IN_FULL = ("reserve-headroom", "pi")
LEAST = 100_000
LIMIT, SUMMARY = 200_000, 2_000


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
            summarizers = ("sized", SizedSummarizer(SUMMARY)), ("extractive", extractive)
            for who, summarizer in summarizers:
                each = partial(in_full, recording, name, summarizer)
                speed = recording.blocks / taken(each, rounds if who == "sized" else 1)
                met = speed >= LEAST if who == "sized" else None
                target = f">= {LEAST:,}" if met is not None else ""
                what = f"{name} replayed, {who} summaries"
                yield Figure(what, "blocks/s", speed, target=target, met=met)
        gc.unfreeze()


@dataclass(frozen=True)
class SizedSummarizer:
    """A text of about `tokens` tokens that no other summary of the session has."""

    tokens: int
    name: str = "sized"

    def summarize(self, material: Material) -> Draft:
        most = min(self.tokens, material.budget, material.max_useful_tokens)
        # The number of covered positions grows with each summary.
        text = f"{len(material.covers)} " + "blocks " * most
        return Draft(text[: CHARS_PER_TOKEN * most])


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


def in_full(recording: Recording, name: str, summarizer: Summarizer) -> None:
    terms = CompactionTerms(get_policy(name), limit=LIMIT, pins=PinRules())
    write = make_summary_writer(recording, SummaryChain((summarizer,)))
    decider = PolicyDecider(terms, recording, write)
    assert sum(one.tokens > 0 for one, _ in replay_recording(recording, decider, limit=LIMIT))
