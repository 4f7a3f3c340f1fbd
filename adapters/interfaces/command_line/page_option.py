"""The option by which a verb writes one page of a session to send to somebody."""

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
    """Write the page, whole if it is to be `full`."""
    # Whoever writes no page loads nothing of it.
    from ...analysis.auditing.page.page import write_page as write  # noqa: PLC0415

    write(session, path, lineage=lineage, is_full=full)


def print_page_written(path: Path | None) -> None:
    """That the page was written, if it was."""
    if path is not None:
        print_text(f"wrote {path}")
