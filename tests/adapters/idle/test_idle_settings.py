"""The section `idle`: quiet hours as people write them, and a line for each mistake."""

from datetime import UTC, datetime, time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cutbank.adapters.settings.idle_settings import IdleSettings
from cutbank.adapters.settings.load_settings import load_settings
from cutbank.domain.errors import InvalidSettingError
from cutbank.domain.idle_rules import IdleRules

wall = st.times().map(lambda at: at.replace(second=0, microsecond=0))


@given(
    begins=wall, ends=wall, zone=st.sampled_from(["", " Europe/Berlin", "  Asia/Kathmandu", " UTC"])
)
def test_hours_are_read_as_they_are_written(begins: time, ends: time, zone: str) -> None:
    assume(begins != ends)
    settings = IdleSettings(quiet_hours=f" {begins:%H:%M}-{ends:%H:%M}{zone} ")

    quiet = settings.make_rules().quiet_hours

    assert quiet is not None
    assert (quiet.begins, quiet.ends) == (begins, ends)
    assert quiet.zone == ZoneInfo(zone.strip() or "UTC")


def test_what_is_not_set_is_as_the_rules_have_it() -> None:
    assert IdleSettings().make_rules() == IdleRules()


WRONG = [
    ('quiet_hours = "8-20"', 'is "8-20"; it takes hours as 22:00-06:30 Europe/Berlin'),
    ('quiet_hours = "22:00-24:00"', 'is "22:00-24:00"; it takes hours as 22:00'),
    ('quiet_hours = "22:00"', 'is "22:00"; it takes hours'),
    ('quiet_hours = ""', 'is ""; it takes hours'),
    ('quiet_hours = "06:00-06:00"', "which never ends: no work would be begun at all"),
    (
        'quiet_hours = "22:00-06:00 Europe/Berln"',
        "whose zone is no time zone; did you mean Europe/Berlin?",
    ),
    ('quiet_hours = "22:00-06:00 ../../etc"', "whose zone is no time zone"),
    ("quiet_hours = 22", "is 22; it takes"),
    ("time = -1", "is -1; it takes a number of seconds from 0"),
    ("least_utilization = 50", "is 50; it takes a fraction of the limit from 0 up to 1"),
    ("concurrency = 0", "is 0; it takes a whole number of sessions from 1 up to 64"),
    ('serve = "later"', 'is "later"; it takes now or at-threshold'),
    ("lease = 0", "is 0; it takes a number of seconds from 0.1"),
]


def test_a_mistake_is_one_line_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    for said, wrong in WRONG:
        file.write_text(f"[idle]\n{said}\n", encoding="utf-8")

        with pytest.raises(InvalidSettingError) as refused:
            load_settings(file, {})

        (mistake,) = refused.value.mistakes
        assert mistake.startswith(f"{file}:2: idle.{said.partition(' ')[0]} is ")
        assert wrong in mistake
        assert "\n" not in mistake


def test_a_variable_sets_them_as_well(tmp_path: Path) -> None:
    environ = {"CUTBANK_IDLE_QUIET_HOURS": "08:00-20:00 Europe/Berlin", "CUTBANK_IDLE_TIME": "60"}
    file = tmp_path / "settings.toml"
    file.touch()

    rules = load_settings(file, environ).idle.make_rules()

    assert rules.idle_time_s == 60
    assert rules.find_resume_time(datetime(2024, 7, 1, 12, tzinfo=UTC)) == datetime(
        2024, 7, 1, 18, tzinfo=UTC
    )
