"""Implements `backtest`: runs policies over recorded sessions, and compares costs and losses."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ....domain.backtest.cell import BacktestResult, CellOutcome
from ....domain.errors import ExportError, InvalidSettingError, NotFoundError
from ...analysis.backtest.backtest import backtest as run_backtest
from ...analysis.backtest.backtest_text import make_backtest_command
from ...analysis.backtest.grid import DEFAULT_GRID_LIMIT
from ...analysis.replaying.deciders import REPLAY_SUMMARIZERS
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from .database import open_call_store
from .invocation import Invocation
from .printing import print_error, print_json, print_note, print_text
from .progress_bar import show_progress
from .session_lookup import find_session
from .suggestions import suggest_policies

_ALL_SESSIONS = "all"
_DEFAULT_BUDGET = "default"
"""The budget that leaves a summary's size to the policy."""
_DEFAULT_TIMEOUT_S = 300.0


def backtest(
    call: Invocation,
    target: Annotated[
        str,
        typer.Argument(
            metavar="SESSION|PATH|all",
            help="A session, a transcript or a folder of them, or all sessions.",
        ),
    ],
    *,
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            metavar="NAME[@PRESET],...",
            help="See `cutbank policies`; none never compacts, recorded does as was done.",
            autocompletion=suggest_policies,
        ),
    ],
    limits: Annotated[
        str,
        typer.Option("--limits", metavar="TOKENS,...", help="What a prompt may have."),
    ] = str(DEFAULT_GRID_LIMIT),
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="[POLICY.]KEY=VALUE,...",
            help="Values of a setting, each to be tried; may be repeated.",
        ),
    ] = None,
    budgets: Annotated[
        str,
        typer.Option(
            "--budgets",
            metavar="TOKENS,...",
            help="What each summary may take; default is what the policy allows.",
        ),
    ] = _DEFAULT_BUDGET,
    summarizer: Annotated[
        str,
        typer.Option(
            "--summarizer",
            metavar="NAME",
            help=f"Who writes summaries: {', '.join(REPLAY_SUMMARIZERS)}.",
        ),
    ] = REPLAY_SUMMARIZERS[0],
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME", help="Whose prices count; else the recorded one."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Also write a page, tables and JSON there."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            max=256,
            help="Processes; else one for each core.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler, as tcp://HOST:8786."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache", metavar="FILE", help="What was measured; else in the cache folder."
        ),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Measure all, and keep nothing.")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="S", help="Seconds that one cell may take.")
    ] = _DEFAULT_TIMEOUT_S,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Compare policies by what they would have cost and lost.

    They are run over recorded sessions: at each call, what each would have sent. As in
    `cutbank backtest all --policies reserve-headroom,pi,none --limits 16000,32000`; the first
    policy is what the others are compared with.

    Nothing is written to the database. What is measured is kept, so that the same backtest begun
    again goes on where it stopped.
    """
    from ...analysis.backtest.fingerprint import find_default_cache  # noqa: PLC0415 - its libraries take their time

    if no_cache and cache is not None:
        raise InvalidSettingError("--no-cache takes no --cache")
    asked = _split_list("--policies", policies)
    prompts = [_parse_number("--limits", word) for word in _split_list("--limits", limits)]
    sizes = [
        None if word == _DEFAULT_BUDGET else _parse_number("--budgets", word)
        for word in _split_list("--budgets", budgets)
    ]
    tried = _parse_grid(settings or [])
    if report is not None:
        from ...analysis.backtest.report.report_files import check_report  # noqa: PLC0415 - wanted here only

        check_report(report)
    with (
        _open_sessions(call, target, quiet=quiet) as (store, sessions, unread),
        show_progress("measuring", wanted=not quiet) as progress,
    ):
        measured = run_backtest(
            store,
            asked,
            sessions=sessions,
            limits=prompts,
            settings=tried,
            budgets=sizes,
            summarizer=summarizer,
            model=model,
            jobs=jobs,
            timeout_s=timeout,
            cluster=cluster,
            cache=None if no_cache else cache or find_default_cache(),
            progress=progress,
            remark=print_note,
        )
    measured = measured.model_copy(update={"skipped": {**unread, **measured.skipped}})
    _print_answer(call, measured, report, make_backtest_command(measured, target, call.named))
    if unread or any(cell.outcome is not CellOutcome.DONE for cell in measured.cells):
        raise typer.Exit(1)


def _print_answer(
    call: Invocation, measured: BacktestResult, report: Path | None, command: str
) -> None:
    """Print the answer first: it may have taken hours, and writing its report may fail."""
    from .backtest_lines import print_backtest  # noqa: PLC0415 - rich takes its time

    written: list[Path] = []
    why = ""
    if report is not None:
        from ...analysis.backtest.report.report_files import write_report  # noqa: PLC0415 - the extra `backtest`

        try:
            written = write_report(measured, report, command)
        except ExportError as error:
            why = str(error)
    if call.as_json:
        print_json(measured.model_dump(mode="json"))
    else:
        print_backtest(measured)
        for path in written:
            print_text(f"written: {path}")
    if why:
        print_error(why)
        raise typer.Exit(2)


@contextmanager
def _open_sessions(
    call: Invocation, target: str, *, quiet: bool
) -> Iterator[tuple[SessionStore, Sequence[StoredSession], dict[str, str]]]:
    """Open the sessions to measure; also yield the errors of unreadable files, by path."""
    path = Path(target)
    if target != _ALL_SESSIONS and path.exists():
        from ...analysis.backtest.imported_transcripts import find_unread, import_temporarily  # noqa: PLC0415 - all formats come along

        with (
            show_progress("importing", in_bytes=True, wanted=not quiet) as progress,
            import_temporarily(path, call.settings_file, progress) as (store, reports),
        ):
            yield store, store.sessions(), find_unread(reports)
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
        key, equals, tried = text.partition("=")
        if not (key and equals):
            raise InvalidSettingError(f"--set takes KEY=VALUE,..., not {text!r}")
        values.setdefault(key, []).extend(_split_list("--set", tried))
    return values
