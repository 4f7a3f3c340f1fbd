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
    """One line for each call: its view, and the part of the log that it was made from."""

    def __init__(self, session: str, file: TextIO) -> None:
        self.session = session
        self._file = file

    def add(self, served: ReplayedCall) -> None:
        line = {
            "session": self.session,
            "call": served.call.number,
            # The view does not depend on this position or later ones.
            "position": served.call.last_seen_position + 1,
            "tokens": served.tokens,
            "text": render_plain_text(served.make_view()),
        }
        if served.boundary is not None:
            line["first_kept"] = served.boundary.first_kept
        # ASCII output accepts unpaired surrogates in texts.
        self._file.write(json.dumps(line) + "\n")


@contextmanager
def open_view_dump(session: str, path: Path) -> Iterator[ViewDump]:
    """Open a new file, which appears complete when the block is left.

    Raises ExportError if the path exists.
    """
    with open_new_path(path) as part, TextIOWrapper(open_new(part), encoding="ascii") as file:
        yield ViewDump(session, file)
