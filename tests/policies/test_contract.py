"""The contract for users' policies: ours keep it, and whatever breaks it is named."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import cutbank
from cutbank import NothingToCompactError, Plan, Ranges, Trigger, Window, check_settings, setting
from cutbank.domain.compaction_events import Trim
from cutbank.domain.policies.catalog import POLICIES


@dataclass(frozen=True)
class Sound:
    """Keeps so many blocks."""

    name: ClassVar[str] = "sound"
    keep: int = setting(4, unit="blocks", least=1, help="stay word for word")

    def __post_init__(self) -> None:
        check_settings(self)

    def fires(self, window: Window) -> bool:
        return window.limit > 0 and window.used_tokens > window.limit and self._has_more(window)

    def plan(self, window: Window) -> Any:
        if window.trigger is Trigger.THRESHOLD and not self.fires(window):
            return None
        if not self._has_more(window):
            raise NothingToCompactError("nothing to compact: so few blocks")
        return Plan(window.open_to_cut[-self.keep].position, "so many blocks", 300)

    def _has_more(self, window: Window) -> bool:
        return len(window.open_to_cut) > self.keep


def test_every_policy_of_ours_keeps_the_contract() -> None:
    for policy in POLICIES.values():
        cutbank.check_policy(policy)


Planning = Callable[[Any, Window], Any]
SEEN: list[int] = []


def vary(**members: Any) -> Any:
    """A policy that differs from a sound one in these members."""
    return dataclass(frozen=True)(type("Broken", (Sound,), {"__doc__": "", **members}))


def cutting(**plan: Any) -> Planning:
    """A plan for all windows that are not small."""
    given = {"cut": None, "reason": "why not", "summary_tokens": 300, **plan}
    return lambda _, window: Plan(**given) if len(window.items) > 9 else None


def answer_differently(_: Any, window: Window) -> Plan | None:
    SEEN.append(1)
    return Plan(window.after, f"the {len(SEEN)}th time", 300)


def forget_a_block(_: Any, window: Window) -> None:
    window.items.pop()  # type: ignore[attr-defined]


def hide_a_block(_: Any, window: Window) -> None:
    window.hides[1] = None


def divide(_: Any, window: Window) -> Plan | None:
    return Plan(window.after // len(window.items), "by all", 300)


def plan_only_if_asked(_: Any, window: Window) -> Plan | None:
    unasked = window.trigger is Trigger.THRESHOLD
    return None if unasked or len(window.items) < 9 else Plan(9, "it was asked", 300)


BROKEN_PLANS: list[tuple[Planning, str]] = [
    (lambda _, window: "all of it", "plan returns str, not a Plan or None"),
    (divide, "an empty window.*: plan raises ZeroDivisionError"),
    (answer_differently, "it answers otherwise when it is asked again"),
    (forget_a_block, "it changes the window"),
    (hide_a_block, "it changes the window"),
    (cutting(cut=-3), "it cuts at -3, outside the window"),
    (cutting(cut=10**9), "it cuts at 1000000000, outside the window"),
    (cutting(cut=3, reason=" "), "its plan gives no reason of one line"),
    (cutting(cut=3, summary_tokens=-1), "its plan has a summary of less than 0 tokens"),
    (cutting(drops=Ranges.of([10**6])), "it drops #1000000, which is not in the window"),
    (cutting(trims=(Trim(position=10**6, head=1),)), "it shortens #1000000, which is not in"),
    (cutting(cut=9), "it has a plan and says that it does not fire"),
    (plan_only_if_asked, "it fires, and has no plan but where it is asked"),
]


def test_a_plan_that_breaks_the_contract_is_named(subtests: pytest.Subtests) -> None:
    for plan, wrong in BROKEN_PLANS:
        policy = vary(plan=plan, fires=lambda _, window, wrong=wrong: "not fire" not in wrong)
        with subtests.test(wrong), pytest.raises(AssertionError, match=f"sound: .*{wrong}"):
            cutbank.check_policy(policy)


@dataclass
class Changing:
    name: ClassVar[str] = "changing"


@dataclass(frozen=True)
class Forgetful(Sound):
    """Becomes another one when it is stored."""

    extra: int = setting(1, help="more")

    def __post_init__(self) -> None:
        check_settings(self)
        object.__setattr__(self, "extra", self.extra + 1)


BROKEN_CLASSES: list[tuple[Any, str]] = [
    (Changing, r"Changing: Changing is not a @dataclass\(frozen=True\)"),
    (
        vary(__post_init__=lambda _: None),
        r"sound: keep may be \[None\]: call check\(self\) in __post_init__",
    ),
    (vary(more=5, __annotations__={"more": int}), r"more: declare each as setting\(default, help="),
    (
        vary(kinds=setting((), help="which"), __annotations__={"kinds": tuple[str, ...]}),
        "kinds is .*; a setting is an int, float, bool or str",
    ),
    (Forgetful, "it is another one when it is read back from its settings as JSON"),
    (vary(name="Sound!"), "its name is 'Sound!'; it takes small letters"),
    (
        vary(presets={"as_shipped": {"keep": 0}}),
        "its preset @as_shipped is refused: sound: keep cannot be 0",
    ),
    (
        vary(fires=lambda _, window: window.items),
        "fires returns .*, not True or False",
    ),
    (5, "int is not a @dataclass"),
]


def test_a_class_that_is_no_policy_is_named(subtests: pytest.Subtests) -> None:
    for policy, wrong in BROKEN_CLASSES:
        with subtests.test(wrong), pytest.raises(AssertionError, match=wrong):
            cutbank.check_policy(policy)


def test_what_must_be_given_is_given() -> None:
    demanding = vary(
        keep=setting(unit="blocks", least=1, help="stay word for word"),
        __annotations__={"keep": int},
        presets={"short": {"keep": 1}},
    )

    cutbank.check_policy(demanding)
    cutbank.check_policy(demanding(3))


def test_a_long_list_is_cut_short() -> None:
    with pytest.raises(AssertionError) as told:
        cutbank.check_policy(vary(plan=divide))

    assert len(str(told.value).splitlines()) <= 21
