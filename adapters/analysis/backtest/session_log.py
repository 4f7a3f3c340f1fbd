"""One session as a backtest takes it in hand: its log, and the compactions that took place."""

import pickle
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import blake2b

from ....domain.backtest.cell import Cell, Setup
from ....domain.compaction import MAIN
from ....domain.event import Event
from ....domain.session_events import ModelCalled
from ....projections.read_models.moments import said_at
from ....projections.replay.calibration import calibrate
from ....projections.replay.recording import Recording
from ....projections.replay.session_time import SessionTime
from ...runtime.sessions.stored_session import StoredSession
from ...storage.event_log.event_mapper import dumps
from ..replaying.recordings import decisions_of, recording_of
from .errands import Read


@dataclass(frozen=True)
class SessionLog:
    """All that any cell of the session is made of."""

    recording: Recording
    decisions: Sequence[Event]
    """The compactions that took place: those of the session's source, and those served since."""

    @classmethod
    def of(cls, session: StoredSession) -> "SessionLog":
        decisions = decisions_of(session, MAIN)
        return cls(calibrate(recording_of(session), decisions, MAIN), decisions)

    @cached_property
    def digest(self) -> str:
        """Of all that was said and decided, and when; the same in any database."""
        digest = blake2b(digest_size=16)
        recording = self.recording
        digest.update(
            dumps([recording.namespace, recording.key, recording.source, len(recording.log)])
        )
        for recorded in recording.log:
            event = recorded.event
            # What is said of an event's place in a database is left out by `dumps`.
            digest.update(dumps([event.TOPIC, event, said_at(event), recorded.tokens]))
        for event in self.decisions:
            digest.update(dumps([event.TOPIC, event]))
        return digest.hexdigest()

    @property
    def model(self) -> str | None:
        """The model that was called last, as it was recorded."""
        events = (recorded.event for recorded in reversed(self.recording.log))
        called = (event.model for event in events if isinstance(event, ModelCalled))
        return next(filter(None, called), None)

    @property
    def called(self) -> datetime | None:
        """When the model was called last, by the session's own time."""
        time = SessionTime(self.recording)
        now = time.advance(max((call.sees for call in self.recording.calls), default=0))
        return now if time.is_told else None

    def packed(self) -> bytes:
        """For another machine, which need not have the database."""
        return zlib.compress(pickle.dumps(self, protocol=5), 1)

    @classmethod
    def unpacked(cls, packed: bytes) -> "SessionLog":
        """What `packed` made; for bytes of this program's own only."""
        found = pickle.loads(zlib.decompress(packed))  # noqa: S301 - made by `packed`
        assert isinstance(found, cls)
        return found


def read_of(log: SessionLog) -> Read:
    """What is known of a session before anything is measured."""
    recording, calibration = log.recording, log.recording.calibration
    blank = Cell(
        session=recording.key,
        namespace=recording.namespace,
        source=recording.source,
        setup=Setup(policy="", limit=1),
        blocks=recording.blocks,
        calls=len(recording.calls),
        reports=calibration.reports if calibration else 0,
        overhead=calibration.overhead if calibration else None,
        chars_per_token=calibration.chars_per_token if calibration else None,
    )
    told = (call.reported.model for call in recording.calls if call.reported)
    return Read(log.digest, log.model, log.called, blank, tuple(sorted({*filter(None, told)})))
