"""Events that are made by hand, with the fields that no test varies."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cutbank.domain.compaction_events import CompactBoundary, Summary, Trigger
from cutbank.domain.ranges import Ranges

NOTHING = Ranges()
ENVELOPE: dict[str, Any] = {
    "originator_id": UUID(int=1),
    "originator_version": 1,
    "timestamp": datetime(2026, 1, 1, tzinfo=UTC),
    "subject": "s",
}


def make_boundary(after: int = 1, kept: Ranges = NOTHING, **fields: Any) -> CompactBoundary:
    usual = {
        "first_kept": next(iter(kept), after + 1),
        "trigger": Trigger.MANUAL,
        "policy": "a test",
        "pre_tokens": 1,
        "post_tokens": 1,
    }
    return CompactBoundary(**ENVELOPE | {"after": after, "kept": kept} | usual | fields)


def make_summary(text: str = "what happened", covers: Ranges = NOTHING, **fields: Any) -> Summary:
    usual = {"boundary": 1, "summarizer": "a test", "tokens": max(1, len(text) // 4)}
    return Summary(**ENVELOPE | {"text": text, "covers": covers} | usual | fields)
