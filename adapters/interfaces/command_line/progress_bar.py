"""Shows the progress of a slow verb, on terminals only, and never on standard output."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ....domain.hooks import Progress


@contextmanager
def show_progress(
    what: str, *, in_bytes: bool = False, wanted: bool = True
) -> Iterator[Progress | None]:
    """Yield a function to report progress and total; None without a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield None
        return

    from rich.console import Console  # noqa: PLC0415 - only a terminal pays for rich
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    amount = (DownloadColumn(), TransferSpeedColumn()) if in_bytes else (MofNCompleteColumn(),)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *amount,
        TimeRemainingColumn(),
        console=Console(file=sys.stderr, soft_wrap=True),
        transient=True,
        # Messages appear above the bar; in a pipe they are unchanged.
        redirect_stdout=sys.stdout.isatty(),
    ) as bar:
        task = bar.add_task(what, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance
