"""Compresses the bodies of old events again, more tightly."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from ...storage.event_log.event_mapper import decompress_any, load_json, matches_keyed_hash
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.stored_row import LogNotification, RecompressedBody
from .maintenance_task import ShouldContinue, TaskOutcome, TaskRecord

TASK_NAME = "bodies"
_PAGE_EVENTS = 200
MIN_GAIN = 0.05
"""The smallest share of a body's size whose saving is worth rewriting it."""
MAX_BATCH_BYTES = 128 * 1024
"""The bytes stored in one transaction, which limits how long writers wait."""
COMPRESSION_LEVEL = 9
"""Higher levels of Zstandard take far more time and save little."""
RECORD_INTERVAL = 10_000
"""The number of events after which progress is stored even without any body."""


class Recompression:
    """One run through the log, in order, from where the last run ended.

    A body is cold if its event is. Its address is a hash of its content, not of its stored form,
    and the first stored bytes name the compression, so all versions can read it. Bodies are stored
    in batches with the progress; the database stays unlocked while the next ones are compressed.
    """

    def __init__(self, store: EventStore, cold_after: timedelta) -> None:
        import zstandard  # noqa: PLC0415 - only compressing needs it

        self.store = store
        self.cold_until = store.clock() - cold_after
        self._compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL)
        self._damaged = self._saved = self._passed = 0
        self._waiting: list[RecompressedBody] = []

    def run(self, record: TaskRecord, go_on: ShouldContinue) -> TaskRecord:
        outcome, reason, position = TaskOutcome.DONE, None, record.position
        for event, state in self._read_cold_events(record.position):
            if (state.get("bodies") or event.id % _PAGE_EVENTS == 0) and not go_on():
                outcome, reason = TaskOutcome.STOPPED, "stopped for other work; it goes on later"
                break
            self._recompress(event, state)
            position = event.id
            self._passed += 1
            size = sum(len(content) for _, content in self._waiting)
            if size >= MAX_BATCH_BYTES or self._passed >= RECORD_INTERVAL:
                self._store_batch(record, position)
        if self._passed:
            self._store_batch(record, position)
        if self._damaged and outcome is TaskOutcome.DONE:
            reason = f"left alone, since damaged: {self._damaged}; run cutbank verify"
        return TaskRecord(
            outcome=outcome,
            reason=reason,
            saved=self._saved,
            saved_in_all=record.saved_in_all + self._saved,
            position=position,
        )

    def _read_cold_events(self, after: int) -> Iterator[tuple[LogNotification, dict[str, Any]]]:
        """Yield events and their states, up to the first that is not cold."""
        select = self.store.recorder.select_notifications
        while page := list(select(after, _PAGE_EVENTS, inclusive_of_start=False)):
            for event in page:
                state = self._read_state(event)
                if not self._is_cold(state):
                    return
                yield event, state
            after = page[-1].id

    def _is_cold(self, state: dict[str, Any]) -> bool:
        """Return whether the event is old; one from the future counts as cold."""
        try:
            at = datetime.fromisoformat(state["timestamp"])
        except (KeyError, TypeError, ValueError):
            return True
        return not self.cold_until < at <= self.store.clock()

    def _recompress(self, event: LogNotification, state: dict[str, Any]) -> None:
        for _, _, digest in state.get("bodies", ()):
            address = bytes.fromhex(digest)
            body = self.store.recorder.select_stored_body(event.subject, address)
            if body is None:
                continue
            try:
                content = decompress_any(body.content)
            except Exception:  # noqa: BLE001 - damaged bytes may fail in any way
                content = None
            secret = self.store.recorder.names.subject(event.subject)[1]
            if content is None or not matches_keyed_hash(address, content, secret):
                self._damaged += 1  # left for a later repair
                continue
            packed = self._compressor.compress(content)
            if len(packed) <= body.size * (1 - MIN_GAIN) and decompress_any(packed) == content:
                self._waiting.append(RecompressedBody(body, packed))

    def _read_state(self, event: LogNotification) -> dict[str, Any]:
        """Return the event's state; empty if it is encrypted or damaged, which `verify` reports."""
        if event.key_id is not None:
            return {}
        try:
            state = load_json(self.store.mapper.read_plaintext(event))
        except Exception:  # noqa: BLE001 - damaged bytes may fail in any way
            return {}
        return state if isinstance(state, dict) else {}

    def _store_batch(self, record: TaskRecord, position: int) -> None:
        expected = sum(body.size - len(content) for body, content in self._waiting)
        saved = record.saved_in_all + self._saved + expected
        so_far = replace(record, position=position, saved_in_all=saved).to_json()
        self._saved += self.store.recorder.replace_bodies(self._waiting, TASK_NAME, so_far)
        self._waiting, self._passed = [], 0
