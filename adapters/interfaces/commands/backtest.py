"""Implements `backtest`: runs policies over recorded sessions, and compares costs and losses."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from ....domain.backtest_cell import BacktestResult, CellOutcome
from ....domain.backtest_comparison import Metric
from ....domain.errors import BacktestError, ExportError, InvalidSettingError, NotFoundError
from ....domain.hooks import Progress
from ...analysis.backtest.backtest import backtest as run_backtest
from ...analysis.backtest.backtest_tables import (
    IN_BRIEF,
    Table,
    describe_calibration,
    make_control_table,
    make_difference_tables,
    make_failure_table,
    make_result_tables,
)
from ...analysis.backtest.grid import DEFAULT_GRID_LIMIT
from ...analysis.deciders import REPLAY_SUMMARIZERS
from ...analysis.page_templates import format_cell
from ...runtime.sessions.session_store import SessionStore, open_store
from ...runtime.sessions.store_context import Opening
from ...runtime.sessions.stored_session import StoredSession
from ...transcripts.reports import FileReport
from ..command_line.options import parse_settings, suggest_policies
from ..command_line.printing import (
    format_count,
    print_error,
    print_note,
    print_rows,
    print_text,
    show_progress,
)
from ..command_line.sessions import find_session, open_call_store
from ..command_line.verbs import Answer, Invocation, argument, flag, option

if TYPE_CHECKING:
    from ...settings.settings import Settings

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""A fixed import time, so that results are the same in each run."""
_ALL_SESSIONS = "all"
_DEFAULT_BUDGET = "default"
"""The budget that leaves a summary's size to the policy."""
_DEFAULT_TIMEOUT_S = 300.0


def backtest(
    call: Invocation,
    target: str = argument(
        "SESSION|PATH|all", "A session, a transcript or a folder of them, or all sessions."
    ),
    *,
    policies: str = option(
        "--policies NAME[@PRESET],...",
        "See `cutbank policies`; none never compacts, recorded does as was done.",
        ...,
        autocompletion=suggest_policies,
    ),
    limits: str = option("--limits TOKENS,...", "What a prompt may have.", str(DEFAULT_GRID_LIMIT)),
    settings: list[str] | None = option(
        "--set [POLICY.]KEY=VALUE,...", "Values of a setting, each to be tried; may be repeated."
    ),
    budgets: str = option(
        "--budgets TOKENS,...",
        "Tokens that each summary may have; the default is the policy's.",
        _DEFAULT_BUDGET,
    ),
    summarizer: str = option(
        "--summarizer NAME",
        f"Who writes summaries: {', '.join(REPLAY_SUMMARIZERS)}.",
        REPLAY_SUMMARIZERS[0],
    ),
    model: str | None = option(
        "--model NAME", "The model whose prices count; default: the recorded one."
    ),
    report: Path | None = option("--report DIR", "Also write a page and JSON there."),
    jobs: int | None = option("--jobs -j N", "Processes; else one for each core.", min=1, max=256),
    cache: Path | None = option("--cache FILE", "What was measured; else in the cache folder."),
    no_cache: bool = flag("--no-cache", "Measure all, and keep nothing."),
    timeout: float = option("--timeout S", "Seconds that one cell may take.", _DEFAULT_TIMEOUT_S),
    quiet: bool = flag("--quiet -q", "No progress."),
) -> Answer:
    """They are run over recorded sessions: at each call, what each would have sent. As in
    `cutbank backtest all --policies layered,pi,none --limits 16000,32000`; the first
    policy is what the others are compared with.

    Nothing is written to the database. What is measured is kept, so that the same backtest begun
    again goes on where it stopped.
    """
    from ...analysis.backtest.result_cache import find_default_cache  # noqa: PLC0415 - its libraries take their time

    if no_cache and cache is not None:
        raise InvalidSettingError("--no-cache takes no --cache")
    asked = _split_list("--policies", policies)
    prompts = [_parse_number("--limits", word) for word in _split_list("--limits", limits)]
    sizes = [
        None if word == _DEFAULT_BUDGET else _parse_number("--budgets", word)
        for word in _split_list("--budgets", budgets)
    ]
    grid = _parse_grid(settings or [])
    if report is not None:
        from ...analysis.backtest.report import check_report  # noqa: PLC0415 - wanted here only

        check_report(report)
    kept = None if no_cache else cache or find_default_cache()
    try:
        with (
            open_measured_sessions(call, target, quiet=quiet) as (store, sessions, unread),
            show_progress("measuring", wanted=not quiet) as progress,
        ):
            measured = run_backtest(
                store,
                asked,
                sessions=sessions,
                limits=prompts,
                settings=grid,
                budgets=sizes,
                summarizer=summarizer,
                model=model,
                jobs=jobs,
                timeout_s=timeout,
                cache=kept,
                progress=progress,
            )
    except KeyboardInterrupt:
        if kept:
            print_note(f"what was measured is kept in {kept}: begin it again to go on")
        raise
    measured = measured.model_copy(update={"skipped": {**unread, **measured.skipped}})
    is_good = not unread and all(cell.outcome is CellOutcome.DONE for cell in measured.cells)
    answer = Answer(
        measured.model_dump(mode="json"), partial(print_backtest, measured), is_good=is_good
    )
    if report is not None:
        from ...analysis.backtest.report import write_report  # noqa: PLC0415 - the extra `backtest`

        try:
            answer.text += tuple(f"written: {path}" for path in write_report(measured, report))
        except ExportError as error:
            # Print the answer first: it may have taken hours.
            answer.is_good = True
            answer.print(as_json=call.as_json)
            print_error(str(error))
            raise typer.Exit(2) from None
    return answer


@contextmanager
def open_measured_sessions(
    call: Invocation, target: str, *, quiet: bool
) -> Iterator[tuple[SessionStore, Sequence[StoredSession], dict[str, str]]]:
    """Open the sessions to measure; also yield the errors of unreadable files, by path."""
    if not target:
        raise InvalidSettingError("backtest needs a name: write a session, a path, or all")
    path = Path(target)
    if target != _ALL_SESSIONS and path.exists():
        with (
            show_progress("importing", wanted=not quiet) as progress,
            import_temporarily(path, call.settings_file, progress) as (store, reports),
        ):
            unread = (one for one in reports if one.errors and not one.imported)
            errors = {one.path: " ".join(one.errors[0].split()) for one in unread}
            yield store, store.sessions(), errors
        return
    with open_call_store(call) as store:
        if target == _ALL_SESSIONS:
            sessions = store.sessions(call.named)
            if call.named is not None and not sessions:
                raise NotFoundError(f"there are no sessions in namespace {call.named!r}")
            yield store, sessions, {}
            return
        try:
            session = find_session(store, target, call.namespace)
        except NotFoundError as error:
            raise NotFoundError(f"{error}; and no file of that name") from None
        yield store, [session], {}


@contextmanager
def import_temporarily(
    path: Path, settings: "Settings | Path | str | None" = None, progress: Progress | None = None
) -> Iterator[tuple[SessionStore, list[FileReport]]]:
    """Import the transcript at `path`, or all below it; yield the store and a report of each file.

    Raises ImportFileError if there is nothing to import, BacktestError if no session was imported.
    """
    from ...runtime.importing import importer  # noqa: PLC0415 - start-up time: it loads all formats

    with TemporaryDirectory(prefix="cutbank-backtest-") as folder:
        address = str(Path(folder, "transcripts.db"))
        with open_store(
            address, synchronous="NORMAL", settings=settings, clock=lambda: EPOCH
        ) as store:
            files = importer.list_wanted_files(path)
            reports = list(importer.import_files(store, files, progress=progress))
            if not store.sessions():
                wrong = next((error for one in reports for error in one.errors), "no transcripts")
                raise BacktestError(f"{path} holds no session: {wrong}")
            # Workers only read, and need no clock.
            store.context.opening = Opening(address, "NORMAL", compress=False)
            yield store, reports


def _split_list(option: str, text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise InvalidSettingError(f"{option} takes names or numbers with commas between them")
    return words


def _parse_number(option: str, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise InvalidSettingError(f"{option} takes whole numbers of tokens, not {word!r}") from None


def _parse_grid(given: list[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for text in given:
        ((key, tried),) = parse_settings([text]).items()
        values.setdefault(key, []).extend(_split_list("--set", tried))
    return values


MAX_LISTED_ROWS = 20
"""Rows of a table that are printed; the JSON has them all."""
_RESULTS = {
    "What it costs": ("policy", "tokens a call", "prompt tokens", "cost", "written again"),
    "What it keeps": ("policy", "R", "C", "P", "F3", "hard R", "files", "constraints"),
    "How it went": (
        *("policy", "sessions", "compactions", "refused", "broken", "futile", "seconds"),
    ),
}
_COMPARED_METRICS = (Metric.COST, Metric.TOKENS, Metric.REFUSED, Metric.RECALL, Metric.F3)
"""The measures whose differences are printed; the report has the others."""


def print_backtest(measured: BacktestResult) -> None:
    """Print the results of each setup, its differences from the first, and what went wrong."""
    sessions = len({(cell.namespace, cell.session) for cell in measured.cells})
    print_text(
        f"{format_count(sessions, 'session')}, {format_count(len(measured.setups), 'setup')}"
    )
    print_text(describe_calibration(measured))
    skipped = ((why, name) for name, why in measured.skipped.items())
    remarks = (
        (f"{cell.setup.label} at {cell.setup.limit:,}: {cell.why}", cell.session)
        for cell in measured.cells
        if cell.outcome is CellOutcome.DONE and cell.why
    )
    tables = [
        *make_result_tables(measured, _RESULTS),
        make_control_table(measured),
        *make_difference_tables(measured, _COMPARED_METRICS),
        make_failure_table(measured),
        Table("Remarks", ("what", "sessions", "such as"), _count_sessions(remarks)),
        Table("Sessions left out", ("why", "sessions", "such as"), _count_sessions(skipped)),
    ]
    for table in tables:
        rows = [map(format_cell, row) for row in table.rows]
        print_rows(
            [dict(zip(table.names, row, strict=True)) for row in rows],
            table.caption,
            MAX_LISTED_ROWS,
        )
    print_text()
    for caveat in IN_BRIEF:
        print_text(caveat)


def _count_sessions(found: Iterable[tuple[str, str]]) -> list[tuple[str, int, str]]:
    """Return each first value once, with the number of its second ones, and the first of them."""
    groups: dict[str, list[str]] = {}
    for first, session in found:
        groups.setdefault(first, []).append(session)
    return [(first, len(every), every[0]) for first, every in groups.items()]
