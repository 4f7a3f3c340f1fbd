"""Keeps the counted calls of a session among the read models, for whoever asks next."""

from contextlib import suppress
from typing import NamedTuple

from ....domain.errors import StorageError
from ....projections.replay.numbering import Joins
from ...runtime.sessions.session_log import SessionLog
from ...storage.event_log.event_mapper import dumps, loads
from ...storage.read_models.kept_row import kept_row
from ...storage.read_models.location import read_models_of
from .counted import FORMAT, Counted

NEWEST = "SELECT position, digest, calls, joins FROM counted_calls WHERE stream = ? AND format = ?"


class Count(NamedTuple):
    """The calls up to a position, and all that is needed to go on from there."""

    position: int
    digest: bytes
    """Of the event at that position: by it a log is known that was restored since."""
    packed_calls: bytes
    packed_joins: bytes

    @property
    def calls(self) -> Counted:
        return Counted.unpacked(self.packed_calls)

    @property
    def joins(self) -> Joins:
        """What later blocks may be a part of; to read it takes longer than the calls."""
        messages, *rest = loads(self.packed_joins)
        return Joins({(turn, name): answer for turn, name, answer in messages}, *rest)


class KeptCalls:
    """The newest count of one session's calls that was kept."""

    def __init__(self, log: SessionLog) -> None:
        self.context = log.context
        self.stream = log.id

    def newest(self) -> Count | None:
        """None where nothing was kept."""
        try:
            name = read_models_of(self.context.name)
        except StorageError:
            return None  # nowhere to keep anything
        row = kept_row(name, NEWEST, (str(self.stream), FORMAT))
        return Count(*row) if row else None

    def keep(self, position: int, digest: bytes, calls: Counted, joins: Joins) -> None:
        """Keep a count in the place of an earlier one."""
        messages = [(turn, name, answer) for (turn, name), answer in joins.messages.items()]
        packed = dumps([messages, *joins[1:]])
        # What is kept saves time and nothing else: who cannot keep it has counted all the same.
        with suppress(StorageError):
            models = self.context.read_models
            # It is there by now; whoever only reads does without sqlite-utils.
            from ...storage.read_models.read_models import Kept  # noqa: PLC0415

            models.keep_calls(self.stream, Kept(position, digest, FORMAT), calls.packed(), packed)
