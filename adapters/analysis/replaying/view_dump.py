"""Writes every view of a replay as JSON Lines, for programs that measure what a model was sent."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from ....projections.replay.plain_view_text import render_plain_text
from ....projections.replay.replayed_call import ReplayedCall
from ...runtime.exporting.new_file import open_new_path
from ...storage.private_files import open_new


class ViewDump:
    """A line a call: what it was sent, and of which part of the log that was made."""

    def __init__(self, session: str, file: TextIO) -> None:
        self.session = session
        self._file = file

    def add(self, served: ReplayedCall) -> None:
        line = {
            "session": self.session,
            "call": served.call.number,
            # What stands at this position, and behind it, the view was not made of.
            "position": served.call.last_seen_position + 1,
            "tokens": served.tokens,
            "text": render_plain_text(served.make_view()),
        }
        if served.boundary is not None:
            line["first_kept"] = served.boundary.first_kept
        # ASCII, so that half a surrogate pair is a text like any other.
        self._file.write(json.dumps(line) + "\n")


@contextmanager
def open_view_dump(session: str, path: Path) -> Iterator[ViewDump]:
    """A new file that is there whole once the block is left.

    Raises ExportError where something is there already.
    """
    with open_new_path(path) as part, TextIOWrapper(open_new(part), encoding="ascii") as file:
        yield ViewDump(session, file)
