"""Defines arguments and options that several verbs share, with their help texts."""

from typing import Annotated

import typer

from .suggestions import suggest_sessions

HANDLES_HELP = "12, 3-9, last or last-3; '#12' in quotes, or a shell takes it for a comment."

SessionArgument = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="The session's name.", autocompletion=suggest_sessions),
]

HandlesArgument = Annotated[list[str], typer.Argument(metavar="HANDLE", help=HANDLES_HELP)]

LineageOption = Annotated[
    str, typer.Option("--lineage", metavar="NAME", help="Which of its lines of compaction.")
]
