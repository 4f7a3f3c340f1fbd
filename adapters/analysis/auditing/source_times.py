"""Finds when something happened; for imported events, by the source's clock."""

import json
from datetime import datetime
from typing import Any

from ....domain.blocks import AnyBlock, Block, Kind
from ....domain.compaction import RECORDED_LINEAGE
from ....domain.compaction_events import CompactBoundary
from ....domain.event import Event
from ....domain.session_events import ModelCalled
from ....domain.source_time import parse_source_time
from ....projections.read_models.timestamps import get_event_block


def find_source_time(event: Event) -> datetime | None:
    """Return the time of an event; None if only the time of its import is known."""
    match event:
        case CompactBoundary(source_time=time) | ModelCalled(source_time=time) if time:
            return parse_source_time(time)
        case ModelCalled(lineage=lineage) if lineage == RECORDED_LINEAGE:
            return None
        case _:
            block = get_event_block(event)
            if block is None or block.origin is None:
                return event.timestamp
            time = block.origin.time or _find_entry_time(block)
            return parse_source_time(time) if time else None


def _find_entry_time(block: AnyBlock) -> str | None:
    """Return the time in a note's raw source entry."""
    if not isinstance(block, Block) or block.kind is not Kind.NOTE:
        return None
    try:
        entry = json.loads(block.text)
    except (ValueError, RecursionError):
        return None  # the source has another notation
    time = _get_field(entry, "timestamp") or _get_field(
        _get_field(_get_field(entry, "info"), "time"), "created"
    )
    return str(time) if isinstance(time, str | int | float) else None


def _get_field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
