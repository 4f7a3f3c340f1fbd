"""Compresses the bodies of old events again, more tightly."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from ...storage.event_log.event_mapper import decompress_any, load_json
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.storage_tasks import RecompressedBody, Storage, StoredBody
from ...storage.event_log.stored_row import LogNotification, matches_keyed_hash
from .maintenance_task import ShouldContinue, TaskRecord, TaskResult

TASK_NAME = "bodies"
_PAGE_EVENTS = 200
MIN_GAIN = 0.05
"""The smallest share of a body's size whose saving is worth rewriting it."""
MAX_BATCH_BYTES = 128 * 1024
"""The bytes stored in one transaction, which limits how long writers wait."""
RECORD_INTERVAL = 10_000
"""The number of events after which progress is stored even without any body."""


@dataclass
class Recompression:
    """Goes through the log once, in order.

    A body is cold if its event is. Its address is a hash of its content, not of its stored form,
    and the first stored bytes name the compression, so all versions can read it.
    """

    store: EventStore
    storage: Storage
    cold_after: timedelta
    level: int

    def run(self, record: TaskRecord, go_on: ShouldContinue) -> TaskResult:
        done = _Batches(self.storage, record)
        now = self.store.clock()
        while True:
            page = self.store.recorder.select_notifications(
                done.position, _PAGE_EVENTS, inclusive_of_start=False
            )
            for event in page:
                state = self._read_state(event)
                if not self._is_cold(state, now):
                    return done.finish()
                if state.get("bodies") and not go_on():
                    return done.finish(is_whole=False)
                self._recompress(event, state, done)
            if len(page) < _PAGE_EVENTS:
                return done.finish()
            if not go_on():
                return done.finish(is_whole=False)

    def _is_cold(self, state: dict[str, Any], now: datetime) -> bool:
        """Return whether the event is old; one from the future counts as cold."""
        try:
            at = datetime.fromisoformat(state["timestamp"])
        except (KeyError, TypeError, ValueError):
            return True
        return not now - self.cold_after < at <= now

    def _recompress(self, event: LogNotification, state: dict[str, Any], done: "_Batches") -> None:
        for _, _, digest in state.get("bodies", ()):
            address = bytes.fromhex(digest)
            body = self.storage.select_body(event.subject, address)
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
            state = load_json(self.store.mapper.read_plaintext(event))
        except Exception:  # noqa: BLE001 - as above
            return {}
        return state if isinstance(state, dict) else {}

    @cached_property
    def _compressor(self) -> Any:
        import zstandard  # noqa: PLC0415 - only compressing needs it

        return zstandard.ZstdCompressor(level=self.level)


class _Batches:
    """Stores bodies in batches, with the progress of the task.

    The database stays unlocked while the next bodies are compressed.
    """

    def __init__(self, storage: Storage, record: TaskRecord) -> None:
        self.position = record.position
        self.damaged = 0
        self._storage, self._record = storage, record
        self._saved = 0
        self._waiting: list[RecompressedBody] = []
        self._size = 0
        self._passed = 0

    def add(self, smaller: RecompressedBody) -> None:
        self._waiting.append(smaller)
        self._size += len(smaller.content)

    def note_position(self, position: int) -> None:
        """Note that all bodies of the event at `position` were checked."""
        self.position = position
        self._passed += 1
        if self._size >= MAX_BATCH_BYTES or self._passed >= RECORD_INTERVAL:
            self._store()

    def finish(self, *, is_whole: bool = True) -> TaskResult:
        if self._passed:
            self._store()
        note = f"left alone, since damaged: {self.damaged}; run cutbank verify"
        return TaskResult(self._saved, is_whole, note if self.damaged else None, self.position)

    def _store(self) -> None:
        expected = sum(body.size - len(content) for body, content in self._waiting)
        so_far = replace(
            self._record,
            position=self.position,
            saved_in_all=self._record.saved_in_all + self._saved + expected,
        )
        self._saved += self._storage.replace_bodies(self._waiting, TASK_NAME, so_far.to_json())
        self._waiting, self._size, self._passed = [], 0, 0
