"""Where a policy's threshold lies is found out by asking it, whatever it goes by."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

from every_policy import every_name

from cutbank import NothingToCompactError, Policy, Trigger, Window, get_policy
from cutbank.domain.policies.catalog import POLICIES
from cutbank.domain.policies.contract import make_long_history
from cutbank.domain.policies.policy import find_threshold, is_due, measure_threshold


def test_a_policy_fires_at_its_threshold_and_not_below() -> None:
    for limit, name in product([500, 20_000, 200_000], every_name()):
        policy, window = get_policy(name), make_long_history(5).make_window(limit=limit)

        found = find_threshold(policy, window)

        if found is None:
            assert fires_at(0, policy, window) == fires_at(3 * limit, policy, window), name
        else:
            assert fires_at(found, policy, window), (name, limit)
            assert not fires_at(found - 1, policy, window), (name, limit)


def fires_at(tokens: int, policy: Policy, window: Window) -> bool:
    unasked = replace(window, in_use=tokens, usage=tokens, trigger=Trigger.THRESHOLD)
    return is_due(policy, unasked)


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


def test_what_goes_by_something_else_has_no_threshold() -> None:
    policies: tuple[Policy, ...] = (Counting(), Planning())
    for policy in policies:
        few, many = (
            measure_threshold(policy, make_long_history(0).make_window()),
            measure_threshold(policy, make_long_history(9).make_window()),
        )

        assert (few.threshold, many.threshold) == (None, None), policy
        assert (few.fires, many.fires) == (False, True), policy


def test_a_window_without_a_limit_is_looked_at_all_the_same() -> None:
    for policy in POLICIES.values():
        found = measure_threshold(policy(), make_long_history(3).make_window(limit=0))
        assert found.limit == 0
        assert found.used_tokens > 0
