"""One session in cutbank, and the same in raw SQLite."""

from collections.abc import Iterable
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from cutbank import CompactionOptions, SessionStore
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.projections.rendering.catalog import render_view

from .raw import Raw
from .workload import KeepNewest, Piece, SaysTheSame, as_block, turns

COMPACTED_EACH = 50_000
"""Blocks after which a session that is filled is compacted: nobody lets one grow for ever."""


class Twins:
    """Both in one folder, equally durable."""

    def __init__(
        self, folder: Path, synchronous: str = "FULL", key: str = "benchmark", **settings: Any
    ) -> None:
        folder.mkdir(exist_ok=True)
        ours, raw = folder / "cutbank.db", folder / "raw.db"
        self.store = open_store(ours, synchronous=synchronous, **settings)
        self.session, self.raw = self.store.session(key), Raw(raw, synchronous, key)
        self.pieces = (piece for turn in turns(seed=1) for piece in turn)
        self.positions: list[int] = []

    def append(self, piece: Piece) -> None:
        self.positions.append(self.session.append(as_block(piece)).last)

    def append_all(self, pieces: Iterable[Piece]) -> None:
        """A turn, or a part of one, in one transaction: its blocks stand side by side."""
        done = self.session.append(*map(as_block, pieces))
        self.positions += range(done.first, done.last + 1)

    def fill(self, blocks: int) -> int:
        """Append to both, turn by turn; returns the bytes of the raw bodies."""
        size = filled = 0
        for _, pieces in groupby(islice(self.pieces, blocks), itemgetter("turn")):
            turn = list(pieces)
            self.append_all(turn)
            self.raw.append_all(turn)
            size += sum(len(orjson.dumps(piece)) for piece in turn)
            filled += len(turn)
            if filled >= COMPACTED_EACH:
                filled -= COMPACTED_EACH
                self.compact()
        return size

    def view(self, _: object = None) -> object:
        return self.session.view()

    def messages(self, _: object = None) -> object:
        return render_view(self.session.view(), "neutral")

    def compact(self) -> int:
        """Keep the newest blocks in both: 50, or as many as the nearest legal cut leaves."""
        self.session.compact(KeepNewest(), options=CompactionOptions(summarizers=[SaysTheSame()]))
        kept = len(self.session.view().entries)
        self.raw.compact(kept)
        return kept

    def close(self) -> None:
        self.store.close()
        self.raw.close()


def reopened(folder: Path, key: str, _: object = None) -> SessionStore:
    """Open the database anew and view a session."""
    store = open_store(folder / "cutbank.db")
    store.session(key, create=False).view()
    return store


def raw_reopened(folder: Path, key: str, _: object = None) -> Raw:
    raw = Raw(folder / "raw.db", "FULL", key)
    raw.view()
    return raw
