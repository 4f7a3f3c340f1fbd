"""What idle work makes of a session is one word, and the weightiest reason gives it."""

from dataclasses import replace
from typing import Any

from cutbank.projections.read_models.idle_state import IdleFacts

BEFORE, NOW, AFTER = (f"2026-01-01T{hour:02}:00:00.000Z" for hour in (8, 9, 10))
DUE = IdleFacts(
    closed=False,
    is_sub_agent=False,
    leased_until=None,
    open_calls=0,
    wake_at=None,
    is_prepared=False,
    is_served=False,
    settled=False,
    attempts=0,
    utilization=0.7,
    due_at=NOW,
)


def test_the_weightiest_reason_counts() -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({}, "due"),
        ({"due_at": AFTER}, "resting"),
        ({"due_at": None}, "no-gain"),
        ({"utilization": 0.4, "due_at": None}, "small"),
        ({"attempts": 3, "due_at": None}, "given-up"),
        ({"attempts": 2}, "due"),
        ({"attempts": 2, "leased_until": BEFORE, "due_at": None}, "given-up"),
        ({"attempts": 2, "leased_until": AFTER}, "running"),
        ({"leased_until": BEFORE}, "due"),
        ({"settled": True, "due_at": None}, "no-gain"),
        ({"settled": True, "is_served": True, "due_at": None}, "compacted"),
        ({"settled": True, "is_served": True, "is_prepared": True, "due_at": None}, "prepared"),
        ({"is_served": True}, "due"),
        ({"wake_at": AFTER, "due_at": AFTER}, "asleep"),
        ({"wake_at": BEFORE}, "due"),
        ({"open_calls": 1, "due_at": None}, "waiting"),
        ({"is_sub_agent": True, "due_at": None}, "sub-agent"),
        ({"closed": True, "leased_until": AFTER}, "closed"),
    ]
    for changed, state in rows:
        found = replace(DUE, **changed).find_state(NOW, attempts=3, least_share=0.5)
        assert found == state, changed
