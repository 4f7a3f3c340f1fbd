"""Quiet hours end when the clock on the wall says so, also on the days that it is changed."""

from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cutbank.domain.idle_rules import IdleRules, QuietHours

ZONES = sorted(available_timezones() - {"localtime", "Factory"})
CHANGING = (
    "Europe/Berlin",
    "America/New_York",
    "America/Havana",  # at midnight
    "Australia/Lord_Howe",  # by half an hour
    "Africa/Casablanca",  # the other way round
    "America/Santiago",
    "Asia/Tehran",
    "Pacific/Apia",  # left out a day in 2011
)
MINUTE = timedelta(minutes=1)

wall = st.times(min_value=time(0, 0), max_value=time(23, 59)).map(
    lambda at: at.replace(second=0, microsecond=0)
)
moments = st.datetimes(datetime(1995, 1, 1), datetime(2036, 12, 31)).map(  # noqa: DTZ001
    lambda at: at.replace(tzinfo=UTC)
)


def changes_of(zone: ZoneInfo, year: int) -> list[datetime]:
    """The hours of a year in which a zone's clocks are changed."""
    begin = datetime(year, 1, 1, tzinfo=UTC)
    hours = [begin + timedelta(hours=hour) for hour in range(366 * 24)]
    return [
        before
        for before, after in pairwise(hours)
        if before.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset()
    ]


CHANGES = [
    (zone, change)
    for name in CHANGING
    for zone in [ZoneInfo(name)]
    for year in (2011, 2024)
    for change in changes_of(zone, year)
]


def check(quiet: QuietHours, at: datetime) -> None:
    """They end at the first moment at which they do not hold."""
    over = quiet.over_at(at)

    assert over.tzinfo is UTC
    assert over > at
    assert not quiet.hold(over)
    assert quiet.hold(over - datetime.resolution)
    between = at
    while between < over:
        assert quiet.hold(between), f"{between} is not quiet, and would be waited for"
        between += MINUTE


@given(begins=wall, ends=wall, zone=st.sampled_from(ZONES), at=moments)
def test_in_any_zone_they_end_when_they_hold_no_longer(
    begins: time, ends: time, zone: str, at: datetime
) -> None:
    assume(begins != ends)
    quiet = QuietHours(begins, ends, ZoneInfo(zone))
    assume(quiet.hold(at))

    check(quiet, at)


@given(
    change=st.sampled_from(CHANGES),
    begins=wall,
    ends=wall,
    off=st.timedeltas(timedelta(hours=-26), timedelta(hours=26)),
)
@example(
    (ZoneInfo("Europe/Berlin"), datetime(2024, 3, 31, 0, tzinfo=UTC)), time(1), time(2, 30), -MINUTE
)
@example(
    (ZoneInfo("Europe/Berlin"), datetime(2024, 10, 27, 0, tzinfo=UTC)),
    time(2, 40),
    time(2, 30),
    50 * MINUTE,
)
@example(
    (ZoneInfo("America/Havana"), datetime(2011, 11, 13, 4, tzinfo=UTC)),
    time(0),
    time(0, 1, fold=1),
    0 * MINUTE,
)
def test_on_days_that_clocks_are_changed_nothing_is_waited_for_that_is_not_quiet(
    change: tuple[ZoneInfo, datetime], begins: time, ends: time, off: timedelta
) -> None:
    assume(begins != ends)
    zone, near = change
    quiet = QuietHours(begins, ends, zone)
    assume(quiet.hold(near + off))

    check(quiet, near + off)


@pytest.mark.parametrize(
    ("at", "over"),
    [
        # The hour from 2 to 3 is left out, and with it the end of what is quiet.
        ("2024-03-31T00:30+00:00", "2024-03-31T01:00+00:00"),
        # It comes twice, and is quiet until half past twice.
        ("2024-10-27T00:10+00:00", "2024-10-27T00:30+00:00"),
        ("2024-10-27T01:10+00:00", "2024-10-27T01:30+00:00"),
        ("2024-06-01T20:30+00:00", "2024-06-02T00:30+00:00"),
    ],
)
def test_an_hour_that_is_left_out_or_comes_twice(at: str, over: str) -> None:
    quiet = QuietHours(time(22), time(2, 30), ZoneInfo("Europe/Berlin"))

    found = quiet.over_at(datetime.fromisoformat(at))

    assert found == datetime.fromisoformat(over)


@given(at=moments, begins=wall, ends=wall)
def test_rules_put_work_off_while_it_is_quiet_and_only_then(
    at: datetime, begins: time, ends: time
) -> None:
    assume(begins != ends)
    quiet = QuietHours(begins, ends, UTC)

    until = IdleRules(quiet_hours=quiet).put_off_until(at)

    assert (until is not None) == quiet.hold(at)
    assert IdleRules().put_off_until(at) is None
    complement = QuietHours(ends, begins, UTC)
    assert complement.hold(at) != quiet.hold(at)
