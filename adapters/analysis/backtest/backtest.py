"""Runs a backtest: known results come from the cache, the others are measured."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ....domain.backtest.cell import BacktestResult, Cell, Setup
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
from .backtest_pool import (
    DEFAULT_TIMEOUT_S,
    ItemAnswer,
    ItemOrder,
    MeasurementFailure,
    SessionLocation,
    SessionTask,
    measure_tasks,
)
from .backtest_tables import format_session_name
from .cells import BenchTerms, ControlItem, ItemResult, TaskItem
from .grid import Grid
from .result_cache import ResultCache, fingerprint_item, open_result_cache
from .session_log import SessionRead

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
    cache: str | Path | None = None,
    progress: Progress | None = None,
    remark: Callable[[str], None] | None = None,
) -> BacktestResult:
    """Measure what each session, of all or of `sessions`, would have cost under each setup.

    Setups are all of `policies` (`NAME[@PRESET]`, `none`, `recorded`) with all values of `settings`
    (`{"keep_tokens": [8000, 16000], "pi.keep_tokens": [...]}`), all `limits` (tokens of a prompt)
    and all `budgets` (tokens of a summary; None leaves it to the policy). Prices are those of
    `model`, else of the recorded one. This database is not changed.

    `jobs` processes measure; a script calls this below `if __name__ == "__main__":`, because each
    process imports it. A cell that exceeds `timeout_s` seconds, or whose process ends, becomes a
    row with that error. `cache` is a file that keeps results. `progress` is called with how many
    cells and controls are done, and of how many; `remark` with each remark, one line each. The same
    sessions and setups give the same results, except for seconds, however it is run.

    Raises InvalidSettingError for an invalid policy, setting or number, BacktestError if there is
    nothing to measure or no process to do it, CacheFileError for a cache that cannot be used.
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
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise BacktestError(
            f"the seconds of a cell are more than 0 and at most {MAX_TIMEOUT_S:,.0f}, "
            f"not {timeout_s:g}"
        )
    found = store.sessions() if sessions is None else sessions
    if not found:
        raise BacktestError(f"there are no sessions in {store.name}")
    with translate_storage_errors(store.name), ExitStack() as stack:
        kept = None if cache is None else stack.enter_context(open_result_cache(Path(cache)))
        run = _Backtest(
            store,
            found,
            grid,
            cache=kept,
            progress=progress or (lambda *_: None),
            remark=remark or (lambda _: None),
        )
        return run.run(jobs or _count_cores(), timeout_s)


class _Backtest:
    def __init__(
        self,
        store: SessionStore,
        sessions: Sequence[StoredSession],
        grid: Grid,
        *,
        cache: ResultCache | None,
        progress: Progress,
        remark: Callable[[str], None],
    ) -> None:
        self.store = store
        self.sessions = {format_session_name(one.namespace, one.key): one for one in sessions}
        self.setups = grid.make_setups()
        self.cache = cache
        """The results that are kept; None keeps nothing."""
        self.progress = progress
        self.remark = remark
        self.limits = dict.fromkeys(grid.limits)
        items: list[TaskItem] = [*self.setups]
        if grid.summarizer != SIZED_SUMMARIZER:
            budgets = tuple(one for one in grid.budgets if one is not None) or CONTROL_BUDGETS
            items += (ControlItem(limit, budgets) for limit in self.limits)
        self.items = dict(enumerate(items))
        self.total = len(self.sessions) * len(self.items)
        self.results: dict[tuple[str, int], ItemResult] = {}
        self.skipped: dict[str, str] = {}
        self.blank_cells = {
            name: Cell(session=one.key, namespace=one.namespace, source=None, setup=self.setups[0])
            for name, one in self.sessions.items()
        }
        """What is known of each session before any measurement."""
        self._keys: dict[tuple[str, int], str] = {}
        self._find_facts = lru_cache(None)(partial(find_facts, store.settings))
        self._done = 0
        self._cached = 0
        """The number of results in the cache, including earlier ones."""

    def run(self, processes: int, timeout_s: float) -> BacktestResult:
        """Run the backtest. Finished results are in the cache even if it is interrupted."""
        self._report_progress(0)
        with _share_database(self.store) as address:
            tasks = self._make_tasks(address, processes)
            measured = measure_tasks(tasks, self._choose_items, processes, timeout_s)
            try:
                with closing(measured) as answers:
                    for answer in answers:
                        self._take_answer(answer)
            except KeyboardInterrupt:
                if self.cache is not None:
                    number = f"{self._cached:,} of {self.total:,}"
                    kept = f"{number} measurements are kept in {self.cache.path}"
                    self.remark(f"{kept}: begin it again to go on")
                raise
        return self._sort_results()

    # Tasks and workers

    def _make_tasks(self, address: str, processes: int) -> list[SessionTask]:
        """Return tasks, the longest sessions first; sessions are split if they are few."""
        parts = [self.items]
        if len(self.sessions) < processes:
            parts = [
                {number: item for number, item in self.items.items() if item.limit == limit}
                for limit in self.limits
            ]
        by_length = sorted(self.sessions.items(), key=lambda named: (-named[1].position, named[0]))
        return [
            SessionTask(name, SessionLocation(address, session.namespace, session.key), part)
            for name, session in by_length
            for part in parts
        ]

    def _choose_items(self, task: SessionTask, read: SessionRead) -> ItemOrder:
        """Return what to measure of a session: all but the results that are in the cache."""
        self.blank_cells[task.name] = read.blank_cell
        others = {model: self._find_facts(model, at=read.last_call_time) for model in read.models}
        terms = BenchTerms(self.store.settings, others)
        if not read.blank_cell.calls:
            self.skipped[task.name] = NO_CALLS_REASON
            self._report_progress(len(task.items))
            return ItemOrder((), terms)
        wanted: list[tuple[int, ModelFacts | None]] = []
        for number, item in task.items.items():
            facts = self._find_item_facts(item, read)
            key = self.cache and fingerprint_item(read.digest, item, facts, terms)
            if not key or not self._find_cached((task.name, number), key):
                wanted.append((number, facts))
        return ItemOrder(tuple(wanted), terms)

    def _find_cached(self, at: tuple[str, int], key: str) -> bool:
        self._keys[at] = key
        found = self.cache.get(key) if self.cache else None
        if found is None:
            return False
        self.results[at] = found
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
        at, result = (answer.session, answer.number), answer.result
        item = self.items[answer.number]
        if not isinstance(result, MeasurementFailure):
            self.results[at] = result
            self._save_result(at, result)
        elif isinstance(item, Setup):
            row = {"setup": item, "outcome": result.outcome, "why": result.reason}
            self.results[at] = self.blank_cells[answer.session].model_copy(update=row)
        else:
            self.skipped[f"{answer.session}: controls at {item.limit}"] = result.reason
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
        places = {name: (one.namespace, one.key) for name, one in self.sessions.items()}
        by_name = sorted(self.sessions, key=places.__getitem__)
        found = [self.results[at] for at in product(by_name, self.items) if at in self.results]
        return BacktestResult(
            setups=self.setups,
            cells=tuple(one for one in found if isinstance(one, Cell)),
            controls=tuple(one for each in found if not isinstance(each, Cell) for one in each),
            skipped=dict(sorted(self.skipped.items())),
        )

    def _report_progress(self, more: int) -> None:
        self._done += more
        self.progress(self._done, self.total)


@contextmanager
def _share_database(store: SessionStore) -> Iterator[str]:
    """Yield the address of a database that other processes can open: this, or a temporary copy."""
    opening = store.context.opening
    if opening is not None and not is_in_memory(opening.address):
        yield opening.address
        return
    if is_postgres(store.name):
        raise BacktestError("a server's database with a clock of one's own has no copy")
    with TemporaryDirectory(prefix="cutbank-backtest-") as folder:
        copy = Path(folder, "copy.db")
        store.backup(copy)
        yield str(copy)


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
