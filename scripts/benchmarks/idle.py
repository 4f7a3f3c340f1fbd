"""An idle worker among very many sessions: how it begins, what it gets done, what it costs."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from threading import Event
from time import perf_counter, process_time

import cutbank
from cutbank.adapters.runtime.idle.due_sessions import DueSessionIndex
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice
from cutbank.domain.idle_rules import IdleRules

from .figure import Figure, Found, Growth, Options
from .postgres import NEEDED, server
from .resting import Resting
from .timing import alone, elapsed, fresh

WORKERS = 2
RULES = IdleRules(concurrency=1)
"""One summary at a time for each process: by rules it is the processor that takes the time."""
START_S, START_MB, WHOLE_S, IDLE_SHARE = 2, 200, 60, 0.5
BATCH, REPEATS, STARTS = 4, 50, 5
PATIENCE = 300
SCRIPTS = Path(__file__).parent.parent
STARTED = """
import json, time
from benchmarks.timing import peak_memory
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.runtime.sessions.session_store import open_store

with open_store({address!r}) as store:
    worker = IdleWorker(store)
    worker.look()
    print(json.dumps([time.perf_counter(), peak_memory()]))
    worker.stop()
"""


def idle(options: Options) -> Found:
    """100,000 sessions of which 1,000 are due, each of 100k tokens; a million with --large."""
    due = 6 if options.smoke else 1_000
    resting = Resting(str(options.folder / "resting.db"), due)
    fresh(_begun, [resting])
    sizes = [size for size in options.sizes if size >= due]
    grown = Growth(sizes)
    for before, size in zip((0, *sizes), sizes, strict=False):
        ((indexed, found),) = fresh(partial(_grown, resting), [(before, size)])
        yield f"{size:,} sessions: the index took in what was new in {indexed:.1f} s"
        yield grown.figure("due work found", size, found)
    yield from grown.exponents()
    yield from started(resting, max(sizes), 1 if options.smoke else STARTS)
    yield from compacted(resting)
    yield from at_rest("sqlite", resting.address, options)
    for module, reason in NEEDED.items():
        if find_spec(module) is None:
            yield f"idle on postgres: skipped: {reason}"
            return
    with server(options.folder / "idle-postgres") as url:
        yield from at_rest("postgres", url, options)


def _begun(resting: Resting) -> None:
    resting.begin()


def _grown(resting: Resting, sizes: tuple[int, int]) -> tuple[float, float]:
    """How long the index takes to catch up, and then to answer."""
    resting.grow(sizes)
    with resting.store() as store:
        indexed = elapsed(lambda: store.read_models.catch_up(search=False))
        rules = store.settings.idle.make_rules()
        sessions, now = DueSessionIndex(store.read_models, rules), datetime.now(UTC)

        def ask(_: object) -> None:
            """What a look asks: who is due, how many, and who will be next."""
            assert len(sessions.find_due(now)) == resting.due

        return indexed, alone(range(REPEATS), ask)


def started(resting: Resting, sessions: int, times: int) -> Iterator[Figure]:
    """From the start of the process to the end of its first look, which begins the first work."""
    command = [sys.executable, "-c", STARTED.format(address=resting.address)]
    runs = []
    for _ in range(times):
        began = perf_counter()
        found = subprocess.run(
            command, check=True, capture_output=True, cwd=SCRIPTS, timeout=PATIENCE
        )
        ended, memory = json.loads(found.stdout)
        runs.append((ended - began, memory))
    seconds, memory = (median(side) for side in zip(*runs, strict=True))
    what = f"idle worker of {sessions:,} sessions"
    target = f"<= {START_S} s"
    yield Figure(f"{what}, start", "s", seconds, target=target, met=seconds <= START_S)
    target = f"<= {START_MB} MB"
    yield Figure(f"{what}, memory", "MB", memory, target=target, met=memory <= START_MB)


# Two workers, until nothing is due

_barriers: list[Barrier] = []


def _wait_at(barrier: Barrier) -> None:
    _barriers.append(barrier)


def compacted(resting: Resting) -> Found:
    """All that is due, by two processes that know nothing of each other."""
    context = get_context("spawn")
    barrier = context.Barrier(WORKERS)
    with ProcessPoolExecutor(WORKERS, context, _wait_at, (barrier,)) as pool:
        done = list(pool.map(_worked, [resting] * WORKERS))
    seconds = max(end for _, end, _, _ in done) - min(start for start, _, _, _ in done)
    told = sum((Counter(said) for _, _, said, _ in done), Counter[str]())
    with closing(resting.store()) as store:
        store.read_models.catch_up(search=False)
        ((boundaries, sessions),) = store.read_models.file.fetch_rows(
            "SELECT count(*), count(DISTINCT session_id) FROM compactions"
            " WHERE outcome = 'boundary'"
        )
    assert boundaries == sessions == resting.due, (boundaries, sessions, resting.due)
    what = f"{resting.due:,} sessions of 100k tokens compacted by {WORKERS} workers"
    # Of few, the time that two processes take to begin is most of it.
    target, met = (f"<= {WHOLE_S} s", seconds <= WHOLE_S) if resting.due >= 1_000 else ("", None)
    yield Figure(what, "s", seconds, target=target, met=met)
    spent = sum(cpu for _, _, _, cpu in done) * 1e3 / resting.due
    yield Figure("one of these, processor time", "ms", spent)
    yield f"{what}: {', '.join(f'{about} {count:,}' for about, count in sorted(told.items()))}"


def _worked(resting: Resting) -> tuple[float, float, dict[str, int], float]:
    """When it began and was done, by whom notices are, and its processor time."""
    told, is_done = Counter[str](), Event()

    def heard(notice: WorkerNotice) -> None:
        told[notice.about] += 1
        if notice.about is NoticeKind.LOOKED and not notice.due and not notice.running:
            is_done.set()

    with resting.store() as store:
        _ = store.settings
        _barriers[0].wait(PATIENCE)
        began, spent = perf_counter(), process_time()
        cutbank.start_scheduler(store, RULES, listeners=[heard])
        assert is_done.wait(PATIENCE), f"the worker was not done after {PATIENCE} s: {told}"
        return began, perf_counter(), dict(told), process_time() - spent


# Nothing to do


def at_rest(where: str, address: str, options: Options) -> Iterator[Figure]:
    """The processor's time of a worker for which nothing is due, over a minute."""
    seconds = 2.0 if options.smoke else 60.0
    # Where a server's read models go must not be the home of who measures.
    folder = str(options.folder / "state")
    share = fresh(partial(_rested, seconds, folder), [address])[0] * 100
    what = f"idle worker with nothing to do, {where}"
    target = f"< {IDLE_SHARE} %"
    yield Figure(what, "% of a core", share, target=target, met=share < IDLE_SHARE)


def _rested(seconds: float, folder: str, address: str) -> float:
    os.environ["XDG_STATE_HOME"] = folder
    has_looked = Event()

    def heard(notice: WorkerNotice) -> None:
        if notice.about is NoticeKind.LOOKED:
            has_looked.set()

    with Resting(address, 0).store() as store:
        cutbank.start_scheduler(store, listeners=[heard])
        assert has_looked.wait(PATIENCE), "the worker never looked"
        began, spent = perf_counter(), process_time()
        Event().wait(seconds)
        return (process_time() - spent) / (perf_counter() - began)
