"""Times are read in every notation that sources have for them, and in none other."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.event import parse_source_time

SINCE, UNTIL = datetime(1990, 1, 1), datetime(3000, 1, 1)  # noqa: DTZ001 - zones are added
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda east: timezone(timedelta(minutes=east)))
ANY_TIME = st.datetimes(timezones=ZONES).map(datetime.isoformat)


@given(st.datetimes(SINCE, UNTIL, timezones=ZONES))
def test_a_moment_is_the_same_in_all_its_notations(time: datetime) -> None:
    time = time.replace(microsecond=time.microsecond // 1_000 * 1_000)
    seconds = time.timestamp()

    assert parse_source_time(time.isoformat()) == time
    for counted in (f"{seconds:.3f}", str(round(seconds * 1_000))):
        found = parse_source_time(counted)
        assert found is not None
        assert abs(found - time) < timedelta(milliseconds=0.1)


@given(st.text() | st.text("0123456789.-+:TZeE", max_size=20) | ANY_TIME)
def test_no_text_is_more_than_a_time_in_utc_or_none(text: str) -> None:
    found = parse_source_time(text)

    assert found is None or found.tzinfo is UTC


def test_hard_times() -> None:
    rows: list[tuple[str, datetime | None]] = [
        ("2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("20260102", datetime(2026, 1, 2, tzinfo=UTC)),
        ("1712121231530", datetime(2024, 4, 3, 5, 13, 51, 530_000, tzinfo=UTC)),
        ("0", datetime(1970, 1, 1, tzinfo=UTC)),
        ("1e300", None),
        ("nan", None),
        ("0001-01-01T00:00:00+05:00", None),
        ("yesterday", None),
    ]

    assert [(written, parse_source_time(written)) for written, _ in rows] == rows
