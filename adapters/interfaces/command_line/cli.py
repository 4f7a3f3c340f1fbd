"""Runs the program `cutbank`, and turns every error into one line and an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer
from typer.main import get_command

from ....domain.errors import CutbankError, InvalidSettingError, NegativeAnswerError
from .printing import escape_unencodable, print_error, print_json, print_text
from .verbs import (
    AS_JSON,
    DATABASE,
    NAMESPACE,
    SETTINGS_FILE,
    Answer,
    Invocation,
    Program,
    option,
)

COMPLETION_VARIABLE = "_CUTBANK_COMPLETE"
"""Holds the shell that asks for completions: `complete_bash`, `complete_zsh`, ..."""

EXIT_DONE, EXIT_NO, EXIT_USAGE = 0, 1, 2
EXIT_INTERRUPTED, EXIT_PIPE_CLOSED = 130, 141
"""The exit codes that a shell reports for programs that SIGINT or SIGPIPE ended."""

app = typer.Typer(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def print_version(context: typer.Context, asked: bool) -> None:
    if not asked:
        return
    # A slow import that nothing else needs.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - start-up time

    try:
        number = version("cutbank")
    except PackageNotFoundError:
        number = "of a checkout that is not installed"
    Answer({"version": number}, f"cutbank {number}").print(as_json=context.obj.as_json)
    raise typer.Exit(EXIT_DONE)


VERSION = option(
    "--version", "Say which version this is.", default=False, callback=print_version, is_eager=True
)


@app.callback(invoke_without_command=True)
def cutbank(
    context: typer.Context,
    db: str | None = DATABASE,
    namespace: str | None = NAMESPACE,
    as_json: bool = AS_JSON,
    settings_file: str | None = SETTINGS_FILE,
    _version: bool = VERSION,
) -> None:
    """Keep every turn an agent took, and serve a compacted view of it."""
    context.obj = context.obj.merge(Invocation(db, namespace, as_json, settings_file))
    if context.invoked_subcommand is None:
        print_text(context.get_help())
        raise typer.Exit(EXIT_USAGE)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one command line, and exit with its code."""
    words = list(sys.argv[1:] if argv is None else argv)
    escape_unencodable()
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        code = EXIT_PIPE_CLOSED  # the reader needs no more
        _discard_output()
    except OSError as error:
        print_error(f"standard output: {error.strerror or error}")
        code = EXIT_USAGE
        _discard_output()
    sys.exit(code)


def _discard_output() -> None:
    """Discard pending output: Python would retry at exit, and print an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    # Read by hand too: errors before the options are parsed must also be JSON.
    asked = Invocation(as_json="--json" in words)
    try:
        # Not `app()`, which draws boxes around errors and swallows interrupts.
        program = get_command(app)
        if COMPLETION_VARIABLE in os.environ:
            # Descriptions wrap at this width; fish would take each line for a word.
            os.environ["COLUMNS"] = "1000"
            program.main([], prog_name="cutbank")
        with program.make_context("cutbank", list(words), obj=asked) as context:
            program.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except KeyboardInterrupt:
        return _report_error("interrupted", EXIT_INTERRUPTED, asked)
    except BrokenPipeError:
        raise
    except CutbankError as error:
        code = EXIT_NO if isinstance(error, NegativeAnswerError) else EXIT_USAGE
        lines = error.mistakes if isinstance(error, InvalidSettingError) else ()
        return _report_error(str(error), code, asked, lines)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _report_error(f"{where}{error.strerror or error}", EXIT_USAGE, asked)
    except Exception as error:  # expected errors are handled above
        # typer's own errors share no public class; this attribute tells them from bugs.
        if not hasattr(error, "format_message"):
            raise
        return _report_error(_describe_usage_error(error), EXIT_USAGE, asked)
    return EXIT_DONE


def _report_error(message: str, code: int, asked: Invocation, lines: Sequence[str] = ()) -> int:
    if asked.as_json:
        print_json({"error": message})
    for line in lines or (message,):
        print_error(line)
    return code


def _describe_usage_error(error: Exception) -> str:
    message = error.format_message().rstrip(".")  # type: ignore[attr-defined]
    message = message.replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "cutbank"
    return f"{message[:1].lower()}{message[1:]} (see `{path} --help`)"
