"""Stores recompressed bodies in batches, with the progress of the task."""

from dataclasses import replace

from ...storage.event_log.storage_tasks import RecompressedBody, Storage
from .maintenance_task import TaskResult
from .task_record import TaskRecord

MAX_BATCH_BYTES = 128 * 1024
"""The bytes stored in one transaction, which limits how long writers wait."""
RECORD_INTERVAL = 10_000
"""The number of events after which progress is stored even without any body."""


class RecompressedBodies:
    """Collects batches; the database stays unlocked while the next bodies are compressed."""

    def __init__(self, place: Storage, chore: str, record: TaskRecord) -> None:
        self.place, self.chore, self.record = place, chore, record
        self.position = record.position
        self.damaged = 0
        self.saved = 0
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
        return TaskResult(self.saved, is_whole, note if self.damaged else None, self.position)

    def _store(self) -> None:
        hoped = sum(body.size - len(content) for body, content in self._waiting)
        so_far = replace(
            self.record,
            position=self.position,
            saved_in_all=self.record.saved_in_all + self.saved + hoped,
        )
        self.saved += self.place.replace_bodies(self._waiting, self.chore, so_far.to_json())
        self._waiting, self._size, self._passed = [], 0, 0
