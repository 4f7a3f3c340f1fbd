"""What idle work makes of a session is one word, and the weightiest reason gives it."""

from datetime import datetime
from typing import Any

from cutbank.domain.idle_rules import IdleRules
from cutbank.projections.session_row import PASSED_OVER, SessionRow

EARLIER, BEFORE, NOW, AFTER = (f"2026-01-01T{hour:02}:00:00.000Z" for hour in (7, 8, 9, 10))
RULES = IdleRules(idle_time_s=300, least_utilization=0.5, attempts=3, backoff_s=60)


def test_the_weightiest_reason_counts() -> None:
    rows: list[tuple[dict[str, Any], str, str | None]] = [
        ({}, "due", None),
        ({"last_activity": NOW}, "resting", "2026-01-01T09:05:00.000Z"),
        ({"attempts": 2, "failed_at": NOW}, "resting", "2026-01-01T09:02:00.000Z"),
        ({"settled": PASSED_OVER}, "no-gain", None),
        ({"settled": PASSED_OVER, "is_served": True}, "no-gain", None),
        ({"in_use": 400}, "small", None),
        ({"attempts": 3}, "given-up", None),
        ({"attempts": 2}, "due", None),
        ({"attempts": 2, "leased_until": BEFORE}, "given-up", None),
        ({"attempts": 2, "leased_until": AFTER}, "running", AFTER),
        ({"leased_until": BEFORE}, "due", None),
        ({"settled": 1}, "no-gain", None),
        ({"settled": 1, "is_served": True}, "compacted", None),
        ({"settled": 1, "is_served": True, "is_prepared": True}, "prepared", None),
        ({"is_served": True}, "due", None),
        ({"wake_at": AFTER}, "asleep", AFTER),
        ({"wake_at": BEFORE}, "due", None),
        ({"open_calls": 1}, "waiting", None),
        ({"parent_key": "lead"}, "sub-agent", None),
        ({"closed": True, "leased_until": AFTER}, "closed", None),
    ]
    now = datetime.fromisoformat(NOW)
    for changed, state, ends in rows:
        boundaries = {name: changed.pop(name, False) for name in ("is_prepared", "is_served")}
        columns: dict[str, Any] = {"last_activity": EARLIER, "in_use": 700, "context_limit": 1_000}
        row = SessionRow(1, "stream", "default", "s", **columns | changed)
        until = datetime.fromisoformat(ends) if ends else None
        assert row.find_idle_state(now, RULES, 0, **boundaries) == (state, until), changed
        is_last = row.attempts == 2 and row.leased_until is not None
        waits = state in {"due", "resting", "asleep", "running"} and not is_last
        assert (row.find_due_time(RULES, 0) is not None) == waits, changed
    due = SessionRow(1, "stream", "default", "s", last_activity=EARLIER, in_use=700)
    assert due.find_due_time(RULES, 1_000) is not None
    assert due.find_due_time(RULES, 10_000) is None
