"""Where a policy's threshold lies is found out by asking it, whatever it goes by."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.policies.catalog import POLICIES, policy_named
from cutbank.domain.policies.contract.sample_windows import long
from cutbank.domain.policies.policy import is_due, presets_of
from cutbank.domain.policies.threshold import due, threshold_of
from cutbank.domain.window import Window


def named() -> Iterator[str]:
    for name, policy in POLICIES.items():
        yield name
        yield from (f"{name}@{preset}" for preset in presets_of(policy))


@pytest.mark.parametrize("name", list(named()))
@pytest.mark.parametrize("limit", [500, 20_000, 200_000])
def test_a_policy_fires_at_its_threshold_and_not_below(name: str, limit: int) -> None:
    policy, window = policy_named(name, {}), long(5).window(limit=limit)

    found = threshold_of(policy, window)

    def fires_at(tokens: int) -> bool:
        unasked = replace(window, in_use=tokens, usage=tokens, trigger=Trigger.THRESHOLD)
        return is_due(policy, unasked)

    if found is None:
        assert fires_at(0) == fires_at(3 * limit)
    else:
        assert fires_at(found)
        assert not fires_at(found - 1)


@dataclass(frozen=True)
class Counting:
    """Fires by the number of blocks, if at all."""

    name: ClassVar[str] = "counting"

    def fires(self, window: Window) -> bool:
        return len(window.items) > 5

    def plan(self, window: Window) -> Any:
        raise NothingToCompactError("nothing to compact")


@dataclass(frozen=True)
class Planning:
    """Says what it would do, and not when."""

    name: ClassVar[str] = "planning"

    def plan(self, window: Window) -> Any:
        if window.trigger is not Trigger.THRESHOLD:
            raise AssertionError("it is asked as before a call of a model")
        if not window.items:
            return None
        raise NothingToCompactError("nothing to compact: it would, if only it could")


@pytest.mark.parametrize("policy", [Counting(), Planning()], ids=lambda policy: policy.name)
def test_what_goes_by_something_else_has_no_threshold(policy: Any) -> None:
    few, many = due(policy, long(0).window()), due(policy, long(9).window())

    assert (few.threshold, many.threshold) == (None, None)
    assert (few.fires, many.fires) == (False, True)


def test_a_window_without_a_limit_is_looked_at_all_the_same() -> None:
    for policy in POLICIES.values():
        found = due(policy(), long(3).window(limit=0))
        assert found.limit == 0
        assert found.used > 0
