"""Compresses the bodies of old events again, more tightly."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from ...storage.event_log.event_mapper import decompress_any, load_json
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.storage_tasks import RecompressedBody, Storage, StoredBody
from ...storage.event_log.stored_row import LogNotification, matches_keyed_hash
from .maintenance_task import ShouldContinue, TaskResult
from .recompressed_bodies import RecompressedBodies
from .task_record import TaskRecord

_PAGE_EVENTS = 200
"""The number of events read at a time."""
MIN_GAIN = 0.05
"""The smallest share of a body's size whose saving is worth rewriting it."""


@dataclass
class Recompression:
    """Goes through the log once, in order.

    A body is cold if its event is. Its address is a hash of its content, not of its stored form,
    and the first stored bytes name the compression, so all versions can read it.
    """

    store: EventStore
    task_store: Storage
    interval: timedelta
    cold_after: timedelta
    level: int
    name: str = "bodies"

    def run(self, record: TaskRecord, go_on: ShouldContinue) -> TaskResult:
        done = RecompressedBodies(self.task_store, self.name, record)
        now = self.store.clock()
        while True:
            page = self.store.recorder.select_notifications(
                done.position, _PAGE_EVENTS, inclusive_of_start=False
            )
            for event in page:
                said = self._read_state(event)
                if not self._is_cold(said, now):
                    return done.finish()
                if said.get("bodies") and not go_on():
                    return done.finish(is_whole=False)
                self._pack(event, said, done)
            if len(page) < _PAGE_EVENTS:
                return done.finish()
            if not go_on():
                return done.finish(is_whole=False)

    def _is_cold(self, said: dict[str, Any], now: datetime) -> bool:
        """Return whether the event is old; one from the future counts as cold."""
        try:
            at = datetime.fromisoformat(said["timestamp"])
        except (KeyError, TypeError, ValueError):
            return True
        return not now - self.cold_after < at <= now

    def _pack(self, event: LogNotification, said: dict[str, Any], done: RecompressedBodies) -> None:
        for _, _, digest in said.get("bodies", ()):
            address = bytes.fromhex(digest)
            body = self.task_store.select_body(event.subject, address)
            if body is None:
                continue
            content = self._read_content(body, address, event.subject)
            if content is None:
                done.damaged += 1
            elif packed := self._compress(body, content):
                done.add(RecompressedBody(body, packed))
        done.note_position(event.id)

    def _read_content(self, body: StoredBody, address: bytes, subject: str) -> bytes | None:
        """Return the content; None if it is damaged, to leave it for a later repair."""
        try:
            content = decompress_any(body.content)
        except Exception:  # noqa: BLE001 - damaged bytes may fail in any way
            return None
        secret = self.store.recorder.names.subject(subject)[1]
        return content if matches_keyed_hash(address, content, secret) else None

    def _compress(self, body: StoredBody, content: bytes) -> bytes | None:
        """Return the compressed content, None if it saves too little."""
        packed: bytes = self._compressor.compress(content)
        if len(packed) > body.size * (1 - MIN_GAIN) or decompress_any(packed) != content:
            return None
        return packed

    def _read_state(self, event: LogNotification) -> dict[str, Any]:
        """Return the event's state; empty if it is encrypted or damaged, which `verify` reports."""
        if event.key_id is not None:
            return {}
        try:
            said = load_json(self.store.mapper.read_plaintext(event))
        except Exception:  # noqa: BLE001 - as above
            return {}
        return said if isinstance(said, dict) else {}

    @cached_property
    def _compressor(self) -> Any:
        import zstandard  # noqa: PLC0415 - only compressing needs it

        return zstandard.ZstdCompressor(level=self.level)
