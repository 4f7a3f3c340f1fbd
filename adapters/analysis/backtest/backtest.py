"""Runs a backtest: known results come from the cache, the others are measured."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ....domain.backtest_cell import BacktestResult, Cell, Setup
from ....domain.errors import BacktestError
from ....domain.hooks import Progress
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ...storage.databases.database_file import is_in_memory
from ...storage.event_log.addresses import is_postgres
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.process_forks import count_cores
from .backtest_pool import (
    DEFAULT_TIMEOUT_S,
    BenchTerms,
    ItemAnswer,
    MeasurementFailure,
    SessionTask,
    measure_tasks,
)
from .backtest_tables import format_session_name
from .cells import ControlItem, ItemResult, TaskItem
from .grid import Grid
from .result_cache import open_result_cache

CONTROL_BUDGETS = (500, 2_000)
"""Default budgets of the controls' texts, in tokens."""
NO_CALLS_REASON = "no model was called in it"


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
) -> BacktestResult:
    """Measure what each session, of all or of `sessions`, would have cost under each setup.

    Setups are all of `policies` (`NAME[@PRESET]`, `none`, `recorded`) with all values of `settings`
    (`{"keep_tokens": [8000, 16000], "pi.keep_tokens": [...]}`), all `limits` (tokens of a prompt)
    and all `budgets` (tokens of a summary; None leaves it to the policy). Prices are those of
    `model`, else of the recorded one. This database is not changed.

    `jobs` processes measure; a script calls this below `if __name__ == "__main__":`, because each
    process imports it. A cell that exceeds `timeout_s` seconds, or whose process ends, becomes a
    row with that error. `cache` is a file that keeps results. `progress` is called with how many
    cells and controls are done, and of how many. The same sessions and setups give the same
    results, except for seconds, however it is run.

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
    if not timeout_s > 0:
        raise BacktestError(f"the seconds of a cell are more than 0, not {timeout_s:g}")
    found = store.sessions() if sessions is None else sessions
    if not found:
        raise BacktestError(f"there are no sessions in {store.name}")
    kept = None if cache is None else Path(cache)
    with translate_storage_errors(store.name):
        if kept is not None:
            open_result_cache(kept).close()  # before hours of measuring
        run = _Backtest(store, found, grid, cache=kept, progress=progress)
        return run.run(jobs or count_cores(), timeout_s)


class _Backtest:
    def __init__(
        self,
        store: SessionStore,
        sessions: Sequence[StoredSession],
        grid: Grid,
        *,
        cache: Path | None,
        progress: Progress | None,
    ) -> None:
        self.store = store
        self.sessions = {(one.namespace, one.key): one for one in sessions}
        self.setups = grid.make_setups()
        self.cache = cache
        """The file that keeps results; None keeps nothing."""
        self.progress = progress or (lambda *_: None)
        self.limits = dict.fromkeys(grid.limits)
        budgets = tuple(one for one in grid.budgets if one is not None) or CONTROL_BUDGETS
        controls = (ControlItem(limit, budgets) for limit in self.limits)
        self.items: dict[int, TaskItem] = dict(enumerate([*self.setups, *controls]))
        self.total = len(self.sessions) * len(self.items)
        self.results: dict[tuple[tuple[str, str], int], ItemResult] = {}
        self.skipped: dict[str, str] = {}
        self.blank_cells = {
            at: Cell(session=one.key, namespace=one.namespace, source=None, setup=self.setups[0])
            for at, one in self.sessions.items()
        }
        """What is known of each session before any measurement."""
        self._done = 0

    def run(self, processes: int, timeout_s: float) -> BacktestResult:
        """Run the backtest. Finished results are in the cache even if it is interrupted."""
        self._report_progress(0)
        with _share_database(self.store) as address:
            terms = BenchTerms(address, self.store.settings, self.cache)
            tasks = self._make_tasks(processes)
            with closing(measure_tasks(tasks, terms, processes, timeout_s)) as answers:
                for answer in answers:
                    self._take_answer(answer)
        return self._sort_results()

    def _make_tasks(self, processes: int) -> list[SessionTask]:
        """Return tasks, the longest sessions first; sessions are split if they are few."""
        parts = [self.items]
        if len(self.sessions) < processes:
            parts = [
                {number: item for number, item in self.items.items() if item.limit == limit}
                for limit in self.limits
            ]
        by_length = sorted(self.sessions.items(), key=lambda named: (-named[1].position, named[0]))
        return [SessionTask(*at, part) for at, _ in by_length for part in parts]

    def _take_answer(self, answer: ItemAnswer) -> None:
        task, number, result = answer
        at = task.namespace, task.key
        if number is None:
            assert isinstance(result, Cell), "a session that was read has a cell"
            self.blank_cells[at] = result
            if not result.calls:
                self.skipped[format_session_name(*at)] = NO_CALLS_REASON
                self._report_progress(len(task.items))
            return
        item = self.items[number]
        if not isinstance(result, MeasurementFailure):
            self.results[at, number] = result
        elif isinstance(item, Setup):
            row = {"setup": item, "outcome": result.outcome, "why": result.reason}
            self.results[at, number] = self.blank_cells[at].model_copy(update=row)
        else:
            self.skipped[f"{format_session_name(*at)}: controls at {item.limit}"] = result.reason
        self._report_progress(1)

    def _sort_results(self) -> BacktestResult:
        order = product(sorted(self.sessions), self.items)
        found = [self.results[at] for at in order if at in self.results]
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
