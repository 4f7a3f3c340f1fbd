"""Says that a compaction is running, and never where the answer goes."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ...runtime.compaction.status_listener import make_status_listener

if TYPE_CHECKING:
    from ....domain.hooks import Listener

SPINNER_TEXT = "Compacting context..."


@contextmanager
def show_compaction_spinner(listeners: "list[Listener]", *, is_wanted: bool) -> Iterator[None]:
    """Meanwhile, what runs among those who tell the listeners is shown; on a terminal it turns."""
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
