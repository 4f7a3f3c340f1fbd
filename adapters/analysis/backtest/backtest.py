"""Runs a backtest: known results come from the cache, the others are measured."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ....domain.backtest.cell import BacktestResult, Cell, ControlResult, Setup
from ....domain.errors import BacktestError, CacheFileError
from ....domain.hooks import Progress
from ....domain.models import ModelFacts
from ...models.context_limits import find_facts
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ...storage.event_log.addresses import is_postgres
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.sqlite.database_file import is_in_memory
from ..replaying.deciders import SIZED_SUMMARIZER
from .backtest_pool import DEFAULT_TIMEOUT_S, BacktestPool
from .backtest_text import format_session_name
from .cluster import Cluster
from .fingerprint import Cache, fingerprint_item, open_result_cache
from .grid import Grid
from .worker_messages import (
    ControlItem,
    ItemAnswer,
    ItemOrder,
    ItemResult,
    SessionLocation,
    SessionRead,
    SessionTask,
    TaskItem,
)

CONTROL_BUDGETS = (500, 2_000)
"""Default budgets of the controls' texts, in tokens."""
NO_CALLS_REASON = "no model was called in it"
MAX_TIMEOUT_S = 1_000_000.0
"""The longest time limit of a cell: eleven days, half of what system clocks accept."""


def backtest(
    store: SessionStore,
    policies: Sequence[str],
    *,
    sessions: Sequence[StoredSession] | None = None,
    limits: Sequence[int] = (32_000,),
    settings: Mapping[str, Sequence[Any]] | None = None,
    budgets: Sequence[int | None] = (None,),
    summarizer: str = "extractive",
    model: str | None = None,
    jobs: int | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    cluster: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    remark: Callable[[str], None] | None = None,
) -> BacktestResult:
    """Measure what each session, of all or of `sessions`, would have cost under each setup.

    Setups are all of `policies` (`NAME[@PRESET]`, `none`, `recorded`) with all values of `settings`
    (`{"keep_tokens": [8000, 16000], "pi.keep_tokens": [...]}`), all `limits` (tokens of a prompt)
    and all `budgets` (tokens of a summary; None leaves it to the policy). Prices are those of
    `model`, else of the recorded one. This database is not changed.

    `jobs` processes measure, or the workers of the Dask `cluster` at that address. A cell that
    exceeds `timeout_s` seconds, or whose process ends, becomes a row with that error. `cache` is a
    file that keeps results. `progress` is called with how many cells and controls are done, and of
    how many; `remark` with each remark, one line each. The same sessions and setups give the same
    results, except for seconds, however it is run.

    Raises InvalidSettingError for an invalid policy, setting or number, BacktestError for a cache
    or cluster that cannot be used.
    """
    grid = Grid(
        policies=tuple(policies),
        limits=tuple(limits),
        settings=settings or {},
        budgets=tuple(budgets),
        summarizer=summarizer,
        model=model,
    )
    if jobs is not None and jobs < 1:
        raise BacktestError(f"a backtest needs a process, not {jobs}")
    if not timeout_s > 0:
        raise BacktestError(f"a cell needs more than {timeout_s:g} seconds")
    if timeout_s > MAX_TIMEOUT_S:
        raise BacktestError(
            f"a cell is not waited for {timeout_s:g} seconds: {MAX_TIMEOUT_S:,.0f} at most"
        )
    if cluster is not None and summarizer == "llm":
        raise BacktestError(
            "what a model wrote is kept on this machine: --summarizer llm takes no --cluster"
        )
    found = store.sessions() if sessions is None else sessions
    if not found:
        raise BacktestError(f"there are no sessions in {store.name}")
    with translate_storage_errors(store.name), ExitStack() as stack:
        run = _Backtest(
            store, found, grid, progress or (lambda *_: None), remark or (lambda _: None)
        )
        if cache is not None:
            run.cache = stack.enter_context(open_result_cache(Path(cache)))
        return run.run(jobs or _count_cores(), timeout_s, cluster)


@dataclass
class _Backtest:
    store: SessionStore
    sessions: Sequence[StoredSession]
    grid: Grid
    progress: Progress
    remark: Callable[[str], None]
    cache: Cache | None = None
    """The results that are kept; None keeps nothing."""

    def __post_init__(self) -> None:
        self._results: dict[tuple[str, int], ItemResult] = {}
        self._keys: dict[tuple[str, int], str] = {}
        self._find_facts = lru_cache(None)(partial(find_facts, self.store.settings))
        self._skipped: dict[str, str] = {}
        self._done = 0
        self._cached = 0
        """The number of results in the cache, including earlier ones."""
        self._setups = self.grid.make_setups()
        self._sessions = {format_session_name(one.namespace, one.key): one for one in self.sessions}
        setup = self._setups[0]
        self._blank_cells = {
            name: Cell(session=one.key, namespace=one.namespace, source=None, setup=setup)
            for name, one in self._sessions.items()
        }
        """What is known of each session before any measurement."""
        budgets = tuple(one for one in self.grid.budgets if one is not None) or CONTROL_BUDGETS
        items: list[TaskItem] = [*self._setups]
        if self.grid.summarizer != SIZED_SUMMARIZER:
            items += (ControlItem(limit, budgets) for limit in dict.fromkeys(self.grid.limits))
        self._items = dict(enumerate(items))
        self._total = len(self._sessions) * len(self._items)

    def run(self, processes: int, timeout_s: float, cluster: str | None) -> BacktestResult:
        """Run the backtest. Finished results are in the cache even if it is interrupted."""
        with ExitStack() as stack:
            self._report_progress(0)
            if cluster is not None:
                tasks = self._make_tasks("", 1)
                pool: Cluster | BacktestPool = Cluster(
                    cluster, self.store, tasks, self._choose_items, timeout_s
                )
            else:
                tasks = self._make_tasks(self._shared_address(stack), processes)
                pool = BacktestPool(tasks, self._choose_items, processes, timeout_s)
            try:
                for answer in stack.enter_context(closing(pool.measure_all())):
                    self._take_answer(answer)
            except KeyboardInterrupt:
                self._report_cached()
                raise
        if self.cache is not None and self.cache.damaged:
            rows = "1 row was" if self.cache.damaged == 1 else f"{self.cache.damaged} rows were"
            self.remark(f"{rows} damaged in {self.cache.path}, and measured again")
        return self._sort_results()

    # Tasks and workers

    def _make_tasks(self, address: str, processes: int) -> list[SessionTask]:
        """Return tasks, the longest sessions first; sessions are split if they are few."""
        parts = [self._items]
        if len(self._sessions) < processes:
            limits = dict.fromkeys(self.grid.limits)
            parts = [
                {number: item for number, item in self._items.items() if item.limit == limit}
                for limit in limits
            ]
        by_length = sorted(self._sessions.items(), key=lambda named: (-named[1].position, named[0]))
        return [
            SessionTask(name, SessionLocation(address, session.namespace, session.key), part)
            for name, session in by_length
            for part in parts
        ]

    def _shared_address(self, stack: ExitStack) -> str:
        """Return a database that other processes can open: this, or a copy if in memory."""
        opening = self.store.context.opening
        if opening is not None and not is_in_memory(opening.address):
            return opening.address
        if is_postgres(self.store.name):
            raise BacktestError("a server's database with a clock of one's own has no copy")
        folder = stack.enter_context(TemporaryDirectory(prefix="cutbank-backtest-"))
        copy = Path(folder, "copy.db")
        self.store.backup(copy)
        return str(copy)

    def _choose_items(self, task: SessionTask, read: SessionRead) -> ItemOrder:
        self._blank_cells[task.name] = read.blank_cell
        if not read.blank_cell.calls:
            self._skipped[task.name] = NO_CALLS_REASON
            self._report_progress(len(task.items))
            return ItemOrder(())
        wanted: list[tuple[int, ModelFacts | None]] = []
        others = {model: self._find_facts(model, at=read.last_call_time) for model in read.models}
        for number, item in task.items.items():
            facts = self._find_item_facts(item, read)
            key = fingerprint_item(read.digest, item, facts, self.store.settings, others)
            if not self._is_known(task.name, number, key):
                wanted.append((number, facts))
        return ItemOrder(tuple(wanted), self.store.settings, others)

    def _is_known(self, session: str, number: int, key: str | None) -> bool:
        if self.cache is None or key is None:
            return False
        self._keys[session, number] = key
        found = self.cache.get(key)
        if found is None:
            return False
        self._results[session, number] = found
        self._cached += 1
        self._report_progress(1)
        return True

    def _find_item_facts(self, item: TaskItem, read: SessionRead) -> ModelFacts | None:
        if not isinstance(item, Setup):
            return None
        model = item.model or read.model
        if model is None:
            return None
        # A named model has today's prices; a recorded one has those of its time.
        return self._find_facts(model, at=None if item.model else read.last_call_time)

    # Results

    def _take_answer(self, answer: ItemAnswer) -> None:
        at = (answer.session, answer.number)
        item = self._items[answer.number]
        if answer.result is not None:
            self._results[at] = answer.result
            self._save_result(at, answer.result)
        elif isinstance(item, Setup):
            row = {"setup": item, "outcome": answer.outcome, "why": answer.reason}
            self._results[at] = self._blank_cells[answer.session].model_copy(update=row)
        else:
            self._skipped[f"{answer.session}: controls at {item.limit}"] = answer.reason
        self._report_progress(1)

    def _save_result(self, at: tuple[str, int], result: ItemResult) -> None:
        if self.cache is None or at not in self._keys:
            return
        try:
            self.cache.put(self._keys[at], result)
            self._cached += 1
        except CacheFileError as error:
            # A full disk, for example, must not lose the results in memory.
            self.remark(f"{error}; nothing more is kept")
            self.cache = None

    def _sort_results(self) -> BacktestResult:
        cells: list[Cell] = []
        controls: list[ControlResult] = []
        by_name = sorted(self._sessions, key=lambda name: _get_place(self._sessions[name]))
        for name, number in product(by_name, self._items):
            match self._results.get((name, number)):
                case Cell() as cell:
                    cells.append(cell)
                case tuple() as found:
                    controls += found
                case None:
                    pass
        return BacktestResult(
            setups=self._setups,
            cells=tuple(cells),
            controls=tuple(controls),
            skipped=dict(sorted(self._skipped.items())),
        )

    def _report_progress(self, more: int) -> None:
        self._done += more
        self.progress(self._done, self._total)

    def _report_cached(self) -> None:
        if self.cache is not None:
            kept = f"{self._cached:,} of {self._total:,} measurements are kept in {self.cache.path}"
            self.remark(f"{kept}: begin it again to go on" if self._cached else kept)


def _get_place(session: StoredSession) -> tuple[str, str]:
    return session.namespace, session.key


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
