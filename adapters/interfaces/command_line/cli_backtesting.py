"""The verb that runs policies over recorded sessions, and says what each costs and loses."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ....domain.backtest.cell import Outcome
from ....domain.backtest.result import Measured
from ....domain.errors import ExportError, InvalidSettingError, NotFoundError
from ...analysis.backtest.backtest import backtest as run_backtest
from ...analysis.backtest.grid import LIMIT
from ...analysis.backtest.in_words import command_of
from ...analysis.replaying.deciders import SUMMARISERS
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from .completing import policy_names
from .database import opened_store
from .invocation import Invocation
from .printing import complain, remark, say, say_json
from .progress_bar import progress_bar
from .session_words import find_session

ALL = "all"
DEFAULT = "default"
"""The budget that leaves a summary's size to the policy."""
TIMEOUT_S = 300.0


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
            autocompletion=policy_names,
        ),
    ],
    limits: Annotated[
        str,
        typer.Option("--limits", metavar="TOKENS,...", help="What a prompt may have."),
    ] = str(LIMIT),
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
    ] = DEFAULT,
    summariser: Annotated[
        str,
        typer.Option(
            "--summariser", metavar="NAME", help=f"Who writes summaries: {', '.join(SUMMARISERS)}."
        ),
    ] = SUMMARISERS[0],
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
            "--jobs", "-j", metavar="N", min=1, max=256, help="Processes; else one for each core."
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
    ] = TIMEOUT_S,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Compare policies by what they would have cost and lost.

    They are run over recorded sessions: at each call, what each would have sent. As in
    `cutbank backtest all --policies reserve-headroom,pi,none --limits 16000,32000`; the first
    policy is what the others are compared with.

    Nothing is written to the database. What is measured is kept, so that the same backtest begun
    again goes on where it stopped.
    """
    from ...analysis.backtest.cache import usual_cache  # noqa: PLC0415 - its libraries take their time

    if no_cache and cache is not None:
        raise InvalidSettingError("--no-cache takes no --cache")
    asked = _listed("--policies", policies)
    prompts = [_number("--limits", word) for word in _listed("--limits", limits)]
    sizes = [
        None if word == DEFAULT else _number("--budgets", word)
        for word in _listed("--budgets", budgets)
    ]
    tried = _grid(settings or [])
    if report is not None:
        from ...analysis.backtest.report.report import check_report  # noqa: PLC0415 - wanted here only

        check_report(report)
    with (
        _sessions(call, target, quiet=quiet) as (store, sessions, unread),
        progress_bar("measuring", wanted=not quiet) as progress,
    ):
        measured = run_backtest(
            store,
            asked,
            sessions=sessions,
            limits=prompts,
            settings=tried,
            budgets=sizes,
            summarizer=summariser,
            model=model,
            jobs=jobs,
            timeout_s=timeout,
            cluster=cluster,
            cache=None if no_cache else cache or usual_cache(),
            progress=progress,
            remark=remark,
        )
    measured = measured.model_copy(update={"skipped": {**unread, **measured.skipped}})
    _say(call, measured, report, command_of(measured, target, call.named))
    if unread or any(cell.outcome is not Outcome.DONE for cell in measured.cells):
        raise typer.Exit(1)


def _say(call: Invocation, measured: Measured, report: Path | None, command: str) -> None:
    """The answer, which may have taken hours: whether its report can be written or not."""
    from .backtest_lines import say_measured  # noqa: PLC0415 - rich takes its time

    written: list[Path] = []
    why = ""
    if report is not None:
        from ...analysis.backtest.report.report import write_report  # noqa: PLC0415 - the extra `backtest`

        try:
            written = write_report(measured, report, command)
        except ExportError as error:
            why = str(error)
    if call.as_json:
        say_json(measured.model_dump(mode="json"))
    else:
        say_measured(measured)
        for path in written:
            say(f"written: {path}")
    if why:
        complain(why)
        raise typer.Exit(2)


@contextmanager
def _sessions(
    call: Invocation, target: str, *, quiet: bool
) -> Iterator[tuple[SessionStore, Sequence[StoredSession], dict[str, str]]]:
    """What is to be measured, and which files could not be read: why, by path."""
    path = Path(target)
    if target != ALL and path.exists():
        from ...analysis.backtest.transcripts import imported, unread  # noqa: PLC0415 - all formats come along

        with (
            progress_bar("importing", in_bytes=True, wanted=not quiet) as progress,
            imported(path, call.settings_file, progress) as (store, reports),
        ):
            yield store, store.sessions(), unread(reports)
        return
    with opened_store(call) as store:
        if target == ALL:
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


def _listed(option: str, text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise InvalidSettingError(f"{option} takes names or numbers with commas between them")
    return words


def _number(option: str, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise InvalidSettingError(f"{option} takes whole numbers of tokens, not {word!r}") from None


def _grid(given: list[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for text in given:
        key, equals, tried = text.partition("=")
        if not (key and equals):
            raise InvalidSettingError(f"--set takes KEY=VALUE,..., not {text!r}")
        values.setdefault(key, []).extend(_listed("--set", tried))
    return values
