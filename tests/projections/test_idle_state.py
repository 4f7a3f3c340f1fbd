"""What idle work makes of a session is one word, and the weightiest reason gives it."""

from typing import Any

from cutbank.projections.read_models.session_row import SessionRow, SessionRowSettings

BEFORE, NOW, AFTER = (f"2026-01-01T{hour:02}:00:00.000Z" for hour in (8, 9, 10))
RULES = SessionRowSettings(
    idle_seconds=300, context_limit=0, least_share=0.5, attempts=3, backoff_seconds=60
)


def test_the_weightiest_reason_counts() -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({}, "due"),
        ({"due_at": AFTER}, "resting"),
        ({"due_at": None}, "no-gain"),
        ({"utilisation": 0.4, "due_at": None}, "small"),
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
        ({"parent_key": "lead", "due_at": None}, "sub-agent"),
        ({"closed": True, "leased_until": AFTER}, "closed"),
    ]
    for changed, state in rows:
        boundaries = {name: changed.pop(name, False) for name in ("is_prepared", "is_served")}
        columns: dict[str, Any] = {"due_at": NOW, "utilisation": 0.7} | changed
        row = SessionRow(1, "stream", "default", "s", **columns)
        found = row.find_idle_state(NOW, RULES, **boundaries)
        assert found == state, changed
