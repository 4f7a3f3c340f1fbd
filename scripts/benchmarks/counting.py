"""How well the next call's size is foreseen, and what counting costs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from cutbank import SessionStore
from cutbank.adapters.interfaces.commands.demo import write_sample
from cutbank.adapters.runtime.importing.importer import import_files, list_wanted_files
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.adapters.storage.view_reader import ViewReader
from cutbank.domain.compaction import RECORDED_LINEAGE
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import ModelCalled
from cutbank.projections.history_view import HistoryFold

from .figure import Figure, Found, Options
from .timing import alone

MOST = 3.0
"""Percent that the median prediction may be off."""
SELDOM = 10


def counting(options: Options) -> Found:
    """The sessions of CUTBANK_SESSIONS that carry usage; without it, one that is generated."""
    folder = None if options.smoke else os.environ.get("CUTBANK_SESSIONS")
    source = Path(folder) if folder else options.folder / "sample"
    if not folder:
        source.mkdir()
        write_sample(source / "sample.jsonl")
        yield "counting: CUTBANK_SESSIONS names no folder of transcripts; one is generated"
    with open_store(options.folder / "counting.db", synchronous="NORMAL") as store:
        blocks = sum(report.added for report in import_files(store, list_wanted_files(source)))
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
    guesses = list(_guesses(store))
    later = [guess for guess in guesses if not guess.is_first]
    among = len({guess.session for guess in later})
    yield f"counting: {len(later)} calls after a recorded one, in {among} sessions"
    yield from _figures("next call", later, most=MOST)
    second = [guess for guess in later if guess.is_second]
    yield f"counting: {len(second)} calls on a view that one call had seen"
    yield from _figures("second call on a view", second, most=MOST)
    compacted = [guess for guess in guesses if guess.is_first and guess.is_compacted]
    if compacted:
        yield f"counting: {len(compacted)} first calls after a compaction"
        yield from _figures("first call after a compaction", compacted)
    yield from _figures(f"{SELDOM}th call after a recorded one", list(_seldom(store)))


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


def _guesses(store: SessionStore) -> Iterator[Guess]:
    """Each call, from what stood in the log before its report: read anew each time."""
    for key, calls in _calls(store):
        reader = ViewReader(store.events, "default", key, RECORDED_LINEAGE)
        for at, call in calls:
            history, _ = reader.read_history(at - 1, call.lineage_version)
            yield _guess(key, history, call)


def _guess(key: str, history: HistoryFold, call: ModelCalled) -> Guess:
    shown = tuple(one for one in history.entries.values() if one.position <= call.position)
    use = history.usage_tracker.measure_usage(shown, history.request)
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
        is_second=use.reported_tokens is not None and not use.calibration.has_learned,
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
    largest = max(store.sessions(), key=lambda found: found.position).key
    reader = ViewReader(store.events, "default", largest, RECORDED_LINEAGE)
    history, coordinate = reader.read_history()
    view = history.make_view(largest, "default", coordinate, None)
    entries = len(view.entries)
    seconds = alone(range(options.ops // 10), lambda _: history.measure_usage())
    yield Figure(f"context usage of {entries} entries", "us", seconds * 1e6)
