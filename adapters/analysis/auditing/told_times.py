"""When something happened: of what was imported by its source's clock, or not at all."""

import json
from datetime import datetime
from typing import Any

from ....domain.blocks import AnyBlock, Block, Kind
from ....domain.compaction import RECORDED
from ....domain.compaction_events import CompactBoundary
from ....domain.event import Event
from ....domain.session_events import ModelCalled
from ....domain.source_time import parsed
from ....projections.read_models.moments import block_of


def told_at(event: Event) -> datetime | None:
    """None where only the time of an import is known."""
    match event:
        case CompactBoundary(source_time=time) | ModelCalled(source_time=time) if time:
            return parsed(time)
        case ModelCalled(lineage=lineage) if lineage == RECORDED:
            return None
        case _:
            block = block_of(event)
            if block is None or block.origin is None:
                return event.timestamp
            time = block.origin.time or _in_entry(block)
            return parsed(time) if time else None


def _in_entry(block: AnyBlock) -> str | None:
    """What a note is of that was kept as it stood in its source says its time itself."""
    if not isinstance(block, Block) or block.kind is not Kind.NOTE:
        return None
    try:
        entry = json.loads(block.text)
    except (ValueError, RecursionError):
        return None  # a source of another notation
    time = _field(entry, "timestamp") or _field(_field(_field(entry, "info"), "time"), "created")
    return str(time) if isinstance(time, str | int | float) else None


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
