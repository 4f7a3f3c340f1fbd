"""Defines the option with which a verb writes a session page."""

from pathlib import Path
from typing import Annotated

import typer

from ...runtime.sessions.stored_session import StoredSession
from .printing import print_text

HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write one page to send to somebody: a new file."),
]


def write_session_page(
    session: StoredSession, path: Path, lineage: str | None, *, full: bool
) -> None:
    # Avoid a slow import where no page is written.
    from ...analysis.pages.session_page import write_page as write  # noqa: PLC0415

    write(session, path, lineage=lineage, is_full=full)


def print_page_written(path: Path | None) -> None:
    if path is not None:
        print_text(f"wrote {path}")
