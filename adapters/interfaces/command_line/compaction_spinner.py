"""Shows on a terminal that a compaction is running; never writes to standard output."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ...runtime.compaction.listeners import make_status_listener

if TYPE_CHECKING:
    from ....domain.hooks import Listener

SPINNER_TEXT = "Compacting context..."


@contextmanager
def show_compaction_spinner(listeners: "list[Listener]", *, is_wanted: bool) -> Iterator[None]:
    """Show a spinner while one of the listeners' compactions runs."""
    if not is_wanted:
        yield
        return
    with ExitStack() as shown:

        def show(is_running: bool) -> None:
            shown.close()
            if is_running and not sys.stderr.isatty():
                sys.stderr.write(f"{SPINNER_TEXT}\n")
            elif is_running:
                from rich.console import Console  # noqa: PLC0415 - only a terminal pays for rich

                console = Console(file=sys.stderr, soft_wrap=True)
                shown.enter_context(console.status(SPINNER_TEXT))

        listener = make_status_listener(show)
        listeners.append(listener)
        try:
            yield
        finally:
            listeners.remove(listener)
