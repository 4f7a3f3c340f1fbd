"""Quiet hours end when the clock on the wall says so, also on the days that it is changed."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cutbank import InvalidSettingError
from cutbank.domain.idle_rules import IdleRules, QuietHours

ZONES = sorted(available_timezones() - {"localtime", "Factory"})
MINUTE = timedelta(minutes=1)

wall = st.times(min_value=time(0, 0), max_value=time(23, 59)).map(
    lambda at: at.replace(second=0, microsecond=0)
)
moments = st.datetimes(datetime(1995, 1, 1), datetime(2036, 12, 31)).map(  # noqa: DTZ001
    lambda at: at.replace(tzinfo=UTC)
)


ANYWHERE = st.tuples(st.sampled_from(ZONES).map(ZoneInfo), moments)
BERLIN, HAVANA = ZoneInfo("Europe/Berlin"), ZoneInfo("America/Havana")


@given(near=ANYWHERE, begins=wall, ends=wall)
@example((BERLIN, datetime(2024, 3, 30, 23, 59, tzinfo=UTC)), time(1), time(2, 30))
@example((BERLIN, datetime(2024, 10, 27, 0, 50, tzinfo=UTC)), time(2, 40), time(2, 30))
@example((HAVANA, datetime(2011, 11, 13, 4, tzinfo=UTC)), time(0), time(0, 1, fold=1))
def test_they_end_when_they_hold_no_longer_also_where_clocks_are_changed(
    near: tuple[ZoneInfo, datetime], begins: time, ends: time
) -> None:
    zone, at = near
    quiet = QuietHours(begins, ends, zone)
    assume(begins != ends and quiet.is_quiet(at))

    over = quiet.find_end(at)

    assert over.tzinfo is UTC
    assert over > at
    assert not quiet.is_quiet(over)
    assert quiet.is_quiet(over - datetime.resolution)
    while at < over:
        assert quiet.is_quiet(at), f"{at} is not quiet, and would be waited for"
        at += MINUTE


def test_an_hour_that_is_left_out_or_comes_twice() -> None:
    rows: list[tuple[str, str]] = [
        # The hour from 2 to 3 is left out, and with it the end of what is quiet.
        ("2024-03-31T00:30+00:00", "2024-03-31T01:00+00:00"),
        # It comes twice, and is quiet until half past twice.
        ("2024-10-27T00:10+00:00", "2024-10-27T00:30+00:00"),
        ("2024-10-27T01:10+00:00", "2024-10-27T01:30+00:00"),
        ("2024-06-01T20:30+00:00", "2024-06-02T00:30+00:00"),
    ]
    for at, over in rows:
        quiet = QuietHours(time(22), time(2, 30), ZoneInfo("Europe/Berlin"))

        found = quiet.find_end(datetime.fromisoformat(at))

        assert found == datetime.fromisoformat(over), at


@given(at=moments, begins=wall, ends=wall)
def test_rules_put_work_off_while_it_is_quiet_and_only_then(
    at: datetime, begins: time, ends: time
) -> None:
    assume(begins != ends)
    quiet = QuietHours(begins, ends, UTC)

    until = IdleRules(quiet_hours=quiet).find_resume_time(at)

    assert (until is not None) == quiet.is_quiet(at)
    assert IdleRules().find_resume_time(at) is None
    complement = QuietHours(ends, begins, UTC)
    assert complement.is_quiet(at) != quiet.is_quiet(at)


def test_less_than_a_minute_between_two_quiet_hours_is_refused() -> None:
    for begins, ends in (
        (time(0), time(23, 59, 0, 1)),
        (time(22), time(21, 59, 30)),
        (time(0, 0, 10), time(23, 59, 50)),
    ):
        with pytest.raises(InvalidSettingError, match="leave less than a minute of the day"):
            QuietHours(begins, ends, UTC)

    assert QuietHours(time(0), time(23, 59), UTC).is_quiet(datetime(2024, 6, 1, tzinfo=UTC))


def test_the_first_minute_is_quiet_and_the_last_is_not() -> None:
    for begins, ends in ((8, 20), (20, 8)):
        quiet = QuietHours(time(begins), time(ends), UTC)
        at = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (begins, ends)]
        assert [quiet.is_quiet(one) for one in at] == [True, False]
