"""How well the next call's size is foreseen, and what counting costs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from cutbank import SessionStore
from cutbank.adapters.interfaces.sample import write_sample
from cutbank.adapters.models.vocabularies import (
    VOCABULARIES,
    TiktokenCounter,
    load_encoding,
)
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.adapters.storage.view_reader import ViewReader
from cutbank.domain.compaction import RECORDED_LINEAGE
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import NotFoundError
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import ModelCalled
from cutbank.projections.compaction_window import make_window
from cutbank.projections.context_usage import ContextUsageTracker
from cutbank.projections.history_view import HistoryFold
from cutbank.projections.view_content import TokenCounts

from .figure import Figure, Found, Options
from .timing import alone

MOST = 3.0
"""Percent that the median prediction may be off."""
SELDOM = 10
FEW = 10
"""Calls below which a session says nothing about how well it was foreseen."""


def counting(options: Options) -> Found:
    """The sessions of CUTBANK_SESSIONS that carry usage; without it, one that is generated."""
    folder = os.environ.get("CUTBANK_SESSIONS")
    source = Path(folder) if folder else options.folder / "sample"
    if not folder:
        source.mkdir()
        write_sample(source / "sample.jsonl")
        yield "counting: CUTBANK_SESSIONS names no folder of transcripts; one is generated"
    with open_store(options.folder / "counting.db", synchronous="NORMAL") as store:
        blocks = sum(report.added for report in import_path(store, source))
        yield f"counting: {blocks:,} blocks imported"
        yield from _foreseen(store)
        yield from _costs(store, options)


@dataclass(frozen=True)
class Guess:
    """What was expected of a call before it was made, in several ways, and what was reported."""

    session: str
    reported: int
    calibrated: int
    anchored: int
    """The newest report, and the plain estimate of what came since."""
    estimated: int
    """The plain estimate of the whole view."""
    is_first: bool
    """No call had seen this view yet: the session had just begun, or been compacted."""
    is_compacted: bool
    is_second: bool
    """One call had seen this view, and nothing was learned from it yet but its size."""

    def error(self, way: str) -> float:
        """Percent of what was reported."""
        expected: int = getattr(self, way)
        return 100 * abs(expected - self.reported) / self.reported


def _foreseen(store: SessionStore) -> Found:
    guesses = list(_guesses(store, None))
    later = [guess for guess in guesses if not guess.is_first]
    among = len(_by_session(later))
    yield f"counting: {len(later)} calls after a recorded one, in {among} sessions"
    yield from _figures("next call", later, most=MOST)
    for name, some in _by_session(later).items():
        if len(some) >= FEW:
            yield from _figures(f"next call, {name}", some)
    second = [guess for guess in later if guess.is_second]
    yield f"counting: {len(second)} calls on a view that one call had seen"
    yield from _figures("second call on a view", second, most=MOST)
    compacted = [guess for guess in guesses if guess.is_first and guess.is_compacted]
    if compacted:
        yield f"counting: {len(compacted)} first calls after a compaction"
        yield from _figures("first call after a compaction", compacted)
    yield from _figures(f"{SELDOM}th call after a recorded one", list(_seldom(store)))
    for name in filter(is_available, VOCABULARIES):
        exact = [
            one for one in _guesses(store, TokenCounts(TiktokenCounter(name))) if not one.is_first
        ]
        yield from _figures(f"next call, counted by {name}", exact)


def _figures(what: str, guesses: list[Guess], most: float | None = None) -> Iterator[Figure]:
    if len(guesses) < 2:
        return
    ours, raw = ([guess.error(way) for guess in guesses] for way in ("calibrated", "estimated"))
    between = median(guess.error("anchored") for guess in guesses)
    met = median(ours) < most if most else None
    target = f"< {most:g} %" if most else ""
    yield Figure(f"{what}: median error", "%", median(ours), median(raw), target=target, met=met)
    if not guesses[0].is_first:
        yield Figure(f"{what}: without ratios", "%", between, median(raw))
    ninth, raw_ninth = (quantiles(errors, n=10)[8] for errors in (ours, raw))
    yield Figure(f"{what}: p90", "%", ninth, raw_ninth)


def _by_session(guesses: list[Guess]) -> dict[str, list[Guess]]:
    found: dict[str, list[Guess]] = {}
    for guess in guesses:
        found.setdefault(guess.session, []).append(guess)
    return found


def _guesses(store: SessionStore, tally: TokenCounts | None) -> Iterator[Guess]:
    """Each call, from what stood in the log before its report: read anew each time."""
    store.events.tally = tally or TokenCounts()
    for key, calls in _calls(store):
        reader = ViewReader(store.events, "default", key, RECORDED_LINEAGE)
        for at, call in calls:
            history, _ = reader.read_history(at - 1, call.lineage_version)
            yield _guess(key, history, call)


def is_available(name: str) -> bool:
    try:
        load_encoding(name)
    except NotFoundError:
        return False
    return True


def _guess(key: str, history: HistoryFold, call: ModelCalled) -> Guess:
    shown = tuple(one for one in history.entries.values() if one.position <= call.position)
    use = history.reckoning.measure_usage(shown, history.request)
    besides = history.summary.tokens if history.summary else 0
    newest = use.last_seen_position or 0
    since = sum(one.tokens for one in shown if one.position > newest)
    return Guess(
        session=key[:8],
        reported=call.context or 0,
        calibrated=use.used_tokens,
        anchored=use.reported_tokens + since if use.reported_tokens else 0,
        estimated=besides + sum(one.tokens for one in shown),
        is_first=use.reported_tokens is None,
        is_compacted=history.boundary is not None,
        is_second=use.reported_tokens is not None and not use.calibration.calls,
    )


def _seldom(store: SessionStore) -> Iterator[Guess]:
    """As where a provider reports each tenth call only; up to the first compaction."""
    for key, calls in _calls(store):
        chain = store.events.find_session_chain("default", key)
        first = [at for at, call in calls if not call.lineage_version]
        history, number = HistoryFold(), 0
        for recorded in store.events.read(chain, Ranges.span(1, max(first, default=0))):
            if not isinstance(call := recorded.event, ModelCalled):
                history.apply(recorded)
            elif recorded.position in first:
                if number % SELDOM == 0:
                    if number:
                        yield _guess(key, history, call)
                    history.apply(recorded)
                number += 1


def _calls(store: SessionStore) -> Iterator[tuple[str, list[tuple[int, ModelCalled]]]]:
    """The calls of each session that were reported, each once, and where they stand."""
    for found in store.sessions():
        session = store.session(found.key, create=False)
        chain = store.events.find_session_chain("default", found.key)
        newest: dict[str, tuple[int, ModelCalled]] = {}
        for recorded in store.events.read(chain, Ranges.span(1, session.position)):
            if isinstance(recorded.event, ModelCalled) and recorded.event.context:
                newest[recorded.event.call_id] = (recorded.position, recorded.event)
        yield found.key, sorted(newest.values(), key=lambda one: one[0])


def _costs(store: SessionStore, options: Options) -> Found:
    store.events.tally = TokenCounts()
    largest = max(store.sessions(), key=lambda found: found.position).key
    reader = ViewReader(store.events, "default", largest, RECORDED_LINEAGE)
    history, coordinate = reader.read_history()
    view = history.make_view(largest, "default", coordinate, None)
    entries = len(view.entries)
    seconds = alone(range(options.ops // 10), lambda _: history.measure_usage())
    yield Figure(f"reckoning of {entries} entries", "us", seconds * 1e6)
    seconds = alone(
        range(options.ops // 10),
        lambda _: list(make_window(history, view, 200_000, Trigger.THRESHOLD).items),
    )
    yield Figure(f"window of {entries} entries", "us", seconds * 1e6)
    text = "".join(entry.text for entry in view.entries)
    for name in VOCABULARIES:
        if not is_available(name):
            yield f"counting: the vocabulary {name} is not on this machine"
            continue
        load_encoding.cache_clear()
        start = perf_counter()
        load_encoding(name)
        yield Figure(f"{name}: load", "ms", (perf_counter() - start) * 1e3)
        counter = TiktokenCounter(name)
        seconds = alone([text] * 5, counter.count_text)
        yield Figure(f"{name}: count", "MB/s", len(text.encode()) / seconds / 1e6)
        anew = alone([TokenCounts(counter) for _ in range(5)], partial(_counted, history))
        yield Figure(f"{name}: a view of {view.tokens:,} tokens, anew", "ms", anew * 1e3)
        tally = TokenCounts(counter)
        again = alone([tally] * 21, partial(_counted, history))
        yield Figure(f"{name}: the same, remembered", "ms", again * 1e3)


def _counted(history: HistoryFold, tally: TokenCounts) -> int:
    return (
        ContextUsageTracker(tally)
        .measure_usage(tuple(history.entries.values()), history.request)
        .used_tokens
    )
