"""Many sessions, written at once from many processes or threads into one database."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier as ProcessBarrier
from pathlib import Path
from threading import Barrier, Lock
from time import perf_counter
from typing import Protocol

from cutbank import SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.ranges import Ranges

from .figure import Found, Options, Times, rate
from .raw import Raw
from .workload import Piece, as_block, turns

SESSIONS, PROCESSES = 64, 8
PATIENCE = 120
"""Seconds after which those that wait for the others to be ready give up."""

Span = tuple[float, float]
"""When one writer began a round, and when it was done."""
Rounds = list[tuple[Span, Span]]
"""One writer's rounds: with cutbank, and by hand."""
Put = Callable[[str, int, Piece], object]
Wait = Callable[[float], object]


class RawLog(Protocol):
    """What is written by hand in place of cutbank."""

    def put(self, key: str, seq: int, piece: Piece) -> None: ...

    def all(self, key: str) -> list[tuple[int, Piece]]: ...

    def close(self) -> None: ...


class Both(Protocol):
    """A database that both write into, each in its own tables or file; it can be pickled."""

    def store(self) -> SessionStore: ...

    def raw(self) -> RawLog: ...


@dataclass(frozen=True)
class Files:
    """Two SQLite files side by side."""

    folder: Path

    def store(self) -> SessionStore:
        return open_store(self.folder / "cutbank.db")

    def raw(self) -> RawLog:
        return Raw(self.folder / "raw.db", "FULL", "", shared=True)


@dataclass(frozen=True)
class Work:
    """How much each session gets in each round."""

    both: Both
    sessions: int
    writers: int
    rounds: int
    each: int

    def keys(self, writer: int) -> list[str]:
        return [f"session-{number}" for number in range(writer, self.sessions, self.writers)]

    def pieces(self) -> dict[str, list[Piece]]:
        """What each session is to hold at the end; no two hold the same."""
        return _pieces(self.sessions, self.rounds * self.each)


@lru_cache(maxsize=1)
def _pieces(sessions: int, each: int) -> dict[str, list[Piece]]:
    told = list(islice(turns(seed=3), sessions + each))
    return {
        f"session-{number}": [piece for turn in told[number:] for piece in turn][:each]
        for number in range(sessions)
    }


def writers(options: Options) -> Found:
    """64 sessions from 8 processes, and from 64 threads of one, each append durable by itself."""
    each, rounds = max(1, options.ops // 50), 3 if options.smoke else 5
    for name, count, run in (
        (f"{SESSIONS} sessions from {PROCESSES} processes", PROCESSES, in_processes),
        (f"{SESSIONS} sessions from {SESSIONS} threads", SESSIONS, in_threads),
    ):
        folder = options.folder / f"writers-{count}"
        folder.mkdir()
        work = Work(Files(folder), SESSIONS, count, rounds, each)
        yield rate(name, "appends/s", rates(work, run(work)), least=0.8)
        yield f"{name}: {check(work)}"


def in_processes(work: Work) -> list[Rounds]:
    """Each process has its own connections and its own sessions, and begins with the others."""
    with closing(work.both.store()), closing(work.both.raw()):
        pass  # the tables are there when all begin
    context = get_context("spawn")
    barrier = context.Barrier(work.writers)
    with ProcessPoolExecutor(work.writers, context, _wait_at, (barrier,)) as pool:
        return list(pool.map(partial(_process, work), range(work.writers)))


_barriers: list[ProcessBarrier] = []


def _wait_at(barrier: ProcessBarrier) -> None:
    _barriers.append(barrier)


def _process(work: Work, writer: int) -> Rounds:
    with closing(work.both.store()) as store, closing(work.both.raw()) as raw:
        return write(work, writer, store, raw.put, _barriers[0].wait)


def in_threads(work: Work) -> list[Rounds]:
    """One store; and one connection that threads take turns at, as one would by hand."""
    barrier, lock = Barrier(work.writers), Lock()
    work.pieces()  # once, and not by every thread
    with closing(work.both.store()) as store, closing(work.both.raw()) as raw:

        def put(key: str, seq: int, piece: Piece) -> None:
            with lock:
                raw.put(key, seq, piece)

        def run(writer: int) -> Rounds:
            return write(work, writer, store, put, barrier.wait)

        with ThreadPoolExecutor(work.writers) as pool:
            return list(pool.map(run, range(work.writers)))


def write(work: Work, writer: int, store: SessionStore, put: Put, wait: Wait) -> Rounds:
    """One writer's rounds: a block for each of its sessions in turn, again and again."""
    keys, pieces = work.keys(writer), work.pieces()
    sessions = {key: store.session(key) for key in keys}

    def append(key: str, at: int) -> None:
        sessions[key].append(as_block(pieces[key][at]))

    def append_raw(key: str, at: int) -> None:
        put(key, at + 1, pieces[key][at])

    rounds: Rounds = []
    for number in range(work.rounds):
        spans: dict[Callable[[str, int], None], Span] = {}
        for act in (append, append_raw) if number % 2 else (append_raw, append):
            wait(PATIENCE)
            start = perf_counter()
            for at in range(number * work.each, (number + 1) * work.each):
                for key in keys:
                    act(key, at)
            spans[act] = start, perf_counter()
        rounds.append((spans[append], spans[append_raw]))
    return rounds


def rates(work: Work, done: list[Rounds]) -> Times:
    """Appends a second of all writers together, from the first start to the last end."""
    found: Times = ([], [])
    for spans in zip(*done, strict=True):
        for side, of_writers in zip(found, zip(*spans, strict=True), strict=True):
            taken = max(end for _, end in of_writers) - min(start for start, _ in of_writers)
            side.append(work.sessions * work.each / taken)
    return found


def check(work: Work) -> str:
    """All that was acknowledged is there, once and in order; says how much that is."""
    with closing(work.both.store()) as store, closing(work.both.raw()) as raw:
        verdict = verify(store)
        assert verdict.is_ok, verdict.violations
        for key, pieces in work.pieces().items():
            session = store.session(key, create=False)
            held = session.recall(Ranges.span(1, session.position))
            assert [recalled.block for recalled in held] == [as_block(one) for one in pieces], key
            assert raw.all(key) == list(enumerate(pieces, 1)), key
    blocks = work.sessions * work.rounds * work.each
    return f"{blocks:,} blocks in {verdict.positions:,} positions without a gap, nothing lost"
