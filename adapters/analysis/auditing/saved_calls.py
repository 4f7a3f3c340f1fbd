"""Saves the counted calls of a session among the read models."""

from contextlib import suppress
from typing import NamedTuple

from ....domain.errors import StorageError
from ....projections.replay.call_numbers import AnswerJoins
from ...runtime.sessions.session_log import SessionLog
from ...storage.event_log.event_mapper import dump_json, load_json
from ...storage.read_models.location import find_read_models, read_saved_row
from .call_table import CALL_TABLE_FORMAT, CallTable

_NEWEST_QUERY = (
    "SELECT position, digest, calls, joins FROM counted_calls WHERE stream = ? AND format = ?"
)


class SavedCount(NamedTuple):
    """The calls up to a position, and the state needed to continue counting."""

    position: int
    digest: bytes
    """The digest of the event at that position; it detects a log that was restored since."""
    packed_calls: bytes
    packed_joins: bytes

    @property
    def calls(self) -> CallTable:
        return CallTable.unpack(self.packed_calls)

    @property
    def joins(self) -> AnswerJoins:
        """The state that joins later blocks to calls; it takes longer to load than the calls."""
        messages, *rest = load_json(self.packed_joins)
        return AnswerJoins({(turn, name): answer for turn, name, answer in messages}, *rest)


class SavedCalls:
    """The newest saved count of one session's calls."""

    def __init__(self, log: SessionLog) -> None:
        self.context = log.context
        self.stream = log.id

    def load_newest(self) -> SavedCount | None:
        """Return the newest saved count, or None."""
        try:
            name = find_read_models(self.context.name)
        except StorageError:
            return None  # this store has no read models
        row = read_saved_row(name, _NEWEST_QUERY, (str(self.stream), CALL_TABLE_FORMAT))
        return SavedCount(*row) if row else None

    def save(self, position: int, digest: bytes, calls: CallTable, joins: AnswerJoins) -> None:
        """Save a count, replacing the earlier one."""
        messages = [(turn, name, answer) for (turn, name), answer in joins.messages.items()]
        packed = dump_json([messages, *joins[1:]])
        # A saved count only saves time, so a failure to save is ignored.
        with suppress(StorageError):
            models = self.context.read_models
            # The table exists by now; reading does not need the code that updates them.
            from ...storage.read_models.read_models import SavedState  # noqa: PLC0415

            models.save_calls(
                self.stream, SavedState(position, digest, CALL_TABLE_FORMAT), calls.pack(), packed
            )
