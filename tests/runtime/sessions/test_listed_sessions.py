"""Sessions are listed by name, in pages, by the beginnings of their keys and by their times."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from short_sessions import said

import cutbank
from cutbank import InvalidSettingError

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


def test_sessions_are_found_by_key_time_and_page(tmp_path: Path) -> None:
    now = NOW
    with cutbank.open(tmp_path / "s.db", clock=lambda: now) as store:
        for number, key in enumerate(["b-2", "a%1", "b-1", "a_1", "b-3"]):
            now = NOW + timedelta(hours=number)
            store.session(key).append(said("hello"))
        store.session("b-1", namespace="other").append(said("hello"))

        def keys(**which: object) -> list[str]:
            return [one.key for one in store.sessions(**which)]  # type: ignore[arg-type]

        pages, last = list[list[str]](), None
        while page := store.sessions("default", after=last, limit=2):
            pages.append([one.key for one in page])
            last = page[-1]

        assert pages == [["a%1", "a_1"], ["b-1", "b-2"], ["b-3"]]
        assert keys(prefix="b-") == ["b-1", "b-2", "b-3", "b-1"]
        assert keys(prefix="a%") == ["a%1"]
        assert keys(since=NOW + timedelta(hours=3)) == ["a_1", "b-3", "b-1"]
        assert keys(since=NOW + timedelta(hours=3), prefix="b", limit=1) == ["b-3"]
        info = store.session("b-1").info
        assert (info.opened_at, info.changed_at) == (NOW + timedelta(hours=2),) * 2
        with pytest.raises(InvalidSettingError, match="has no time zone"):
            store.sessions(since=datetime(2026, 3, 1))  # noqa: DTZ001 - it is the mistake
