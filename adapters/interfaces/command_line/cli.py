"""The program `cutbank`, and how whatever goes wrong becomes one line and an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer
from typer.main import get_command

from ....domain.errors import (
    CompactionCancelledError,
    CompactionVetoedError,
    ConflictError,
    ContextOverflowError,
    CutbankError,
    InvalidSettingError,
    MissingSummariesError,
    NothingToCompactError,
    RejectedSummaryError,
)
from .completion import ASKED, complete
from .invocation import AnswerIsNoError, AsJson, Database, Invocation, Namespace, SettingsFile
from .printing import complain, say, say_json, survive_any_text
from .verbs import Program

DONE, NO, WRONG_USAGE = 0, 1, 2
INTERRUPTED, PIPE_CLOSED = 130, 141
"""As a shell reports programs that SIGINT or SIGPIPE ended."""

ANSWERS_NO = (
    AnswerIsNoError,
    CompactionCancelledError,
    CompactionVetoedError,
    ConflictError,
    ContextOverflowError,
    MissingSummariesError,
    NothingToCompactError,
    RejectedSummaryError,
)
"""The question was right, and the answer is no; any other error of ours is wrong usage."""

app = typer.Typer(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def say_version(context: typer.Context, asked: bool) -> None:
    """Before anything else is looked at: it needs no database, and costs next to nothing."""
    if not asked:
        return
    # Nothing else needs it, and it takes its time.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        number = version("cutbank")
    except PackageNotFoundError:
        number = "of a checkout that is not installed"
    if context.obj.as_json:
        say_json({"version": number})
    else:
        say(f"cutbank {number}")
    raise typer.Exit(DONE)


@app.callback(invoke_without_command=True)
def cutbank(
    context: typer.Context,
    db: Database = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
    settings_file: SettingsFile = None,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say which version this is.", callback=say_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Keep every turn an agent took, and serve a compacted view of it."""
    context.obj = context.obj.then(Invocation(db, namespace, as_json, settings_file))
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(WRONG_USAGE)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one command line, and exit with its code."""
    words = list(sys.argv[1:] if argv is None else argv)
    survive_any_text()
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        code = PIPE_CLOSED  # whoever read has what they wanted
        _say_no_more()
    except OSError as error:
        complain(f"standard output: {error.strerror or error}")
        code = WRONG_USAGE
        _say_no_more()
    sys.exit(code)


def _say_no_more() -> None:
    """Let go what could not be written: Python would try again, and complain, when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    # Read by hand as well: what is wrong before the options are read has to be said in JSON, too.
    asked = Invocation(as_json="--json" in words)
    try:
        # Not `app()`: it would draw boxes around errors, and swallow interrupts.
        program = get_command(app)
        if os.environ.get(ASKED):
            complete(program)
        with program.make_context("cutbank", list(words), obj=asked) as context:
            program.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except KeyboardInterrupt:
        return _refused("interrupted", INTERRUPTED, asked)
    except BrokenPipeError:
        raise
    except InvalidSettingError as error:
        return _refused(str(error), WRONG_USAGE, asked, lines=error.mistakes)
    except CutbankError as error:
        code = NO if isinstance(error, ANSWERS_NO) else WRONG_USAGE
        return _refused(str(error), code, asked)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _refused(f"{where}{error.strerror or error}", WRONG_USAGE, asked)
    except Exception as error:  # ours and the system's are named above
        # typer's own errors have no public class in common; this is what tells them from bugs.
        if not hasattr(error, "format_message"):
            raise
        return _refused(_usage(error), WRONG_USAGE, asked)
    return DONE


def _refused(message: str, code: int, asked: Invocation, lines: Sequence[str] = ()) -> int:
    if asked.as_json:
        say_json({"error": message})
    for line in lines or (message,):
        complain(line)
    return code


def _usage(error: Exception) -> str:
    """What typer says is wrong, and where to read how it is right."""
    message = error.format_message().rstrip(".")  # type: ignore[attr-defined]
    message = message.replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "cutbank"
    return f"{message[:1].lower()}{message[1:]} (see `{path} --help`)"
