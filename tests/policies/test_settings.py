"""Settings of policies: those that do not fit are refused by name, in one line."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from cutbank import InvalidSettingError, ScoredPruning, Window, get_policy, setting
from cutbank.domain.policies.catalog import POLICIES
from cutbank.domain.policies.policy import configure_policy
from cutbank.domain.settings import list_settings

REFUSED = """
scored-pruning compaction_threshold=0 | compaction_threshold cannot be 0.0; it takes a fraction
scored-pruning compaction_threshold=nan
scored-pruning protected_turns=1.5 | it takes a whole number
scored-pruning cooldown_seconds=inf
scored-pruning enabled=perhaps | enabled cannot be 'perhaps'; it takes true or false
scored-pruning unit=bytes | scored-pruning has no setting 'unit'
preserve-zone threshold=-0.1 | threshold cannot be -0.1; it takes a fraction of the limit from 0
preserve-zone threshold=1.01
preserve-zone preserve_ratio=0.8 | preserve_ratio is 0.8, so the kept blocks would fire it again
preserve-zone prune_over=0 | prune_over cannot be 0; it takes a whole number of characters from 201
retention-window keep_recent_tokens=True
rolling-timeline fires_at=0 | keeps is 0.7, not below fires_at
rolling-timeline keeps=0.9 | keeps is 0.9, not below fires_at (0.9): the kept blocks would fire
rolling-timeline turn_summary_tokens=1000000000
reserve-headroom keep_tokens=-1 | from 0, or none
"""
"""A policy, a setting with its value, and what the refusal says if not `... cannot be`."""
REFUSED_VALUES: dict[str, Any] = {
    "enabled": 1,
    "protected_turns": True,
    "compaction_threshold": "1" + "0" * 400,
    "reserved_system_tokens": None,
    "cooldown_seconds": "none",
}
"""Settings of scored-pruning that look like what they take."""
ACCEPTED = """
preserve-zone threshold=0
preserve-zone preserve_ratio=0
reserve-headroom keep_tokens=none
"""


def refuse(name: str, settings: Mapping[str, Any]) -> str:
    """What the refusal says; raises AssertionError where the settings are accepted."""
    with pytest.raises(InvalidSettingError) as refused:
        get_policy(name, **settings)
    return str(refused.value)


def settings_of(row: str) -> tuple[str, dict[str, str]]:
    name, *settings = row.split()
    return name, dict(setting.split("=", 1) for setting in settings)


@pytest.mark.parametrize("row", REFUSED.strip().splitlines())
def test_a_setting_that_does_not_fit_is_refused_by_name_in_one_line(row: str) -> None:
    given, _, words = row.partition(" | ")
    name, settings = settings_of(given)

    said = refuse(name, settings)

    assert (words or f"{next(iter(settings))} cannot be") in said
    assert "\n" not in said


def test_a_value_that_only_looks_like_what_a_setting_takes_is_refused() -> None:
    for name, value in REFUSED_VALUES.items():
        assert f"scored-pruning: {name} cannot be" in refuse("scored-pruning", {name: value})


def test_no_policy_takes_less_than_nothing() -> None:
    for policy in POLICIES.values():
        for one in list_settings(policy):
            if one.value_type in {int, float} and one.name != "preserve_recent":
                assert f"{one.name} cannot be -1" in refuse(policy.name, {one.name: "-1"})


def test_a_setting_at_the_bound_is_accepted() -> None:
    for row in ACCEPTED.strip().splitlines():
        name, settings = settings_of(row)
        assert get_policy(name, **settings), row


def test_settings_are_read_from_texts() -> None:
    settings = {
        "enabled": "no",
        "compaction_threshold": "0.25",
        "protected_turns": " 1_0 ",
    }

    assert get_policy("scored-pruning", **settings) == ScoredPruning(
        enabled=False, compaction_threshold=0.25, protected_turns=10
    )


@dataclass(frozen=True)
class Demanding:
    """A policy with a setting that has no default."""

    name: ClassVar[str] = "demanding"
    model: str = setting(help="which model")

    def plan(self, window: Window) -> None:
        """Cut nothing."""


def test_a_setting_that_must_be_given_is_missed() -> None:
    with pytest.raises(InvalidSettingError, match="demanding: model is missing; it takes text"):
        configure_policy(Demanding, {})
    assert configure_policy(Demanding, {"model": "any"}) == Demanding("any")
