"""Arguments and options that several verbs share, and what their help says."""

from typing import Annotated

import typer

from .completing import session_names

HANDLES = "12, 3-9, last or last-3; '#12' in quotes, or a shell takes it for a comment."

SessionName = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="The session's name.", autocompletion=session_names),
]

Handles = Annotated[list[str], typer.Argument(metavar="HANDLE", help=HANDLES)]

Lineage = Annotated[
    str, typer.Option("--lineage", metavar="NAME", help="Which of its lines of compaction.")
]
