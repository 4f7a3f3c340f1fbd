"""The contract for users' policies: ours keep it, and whatever breaks it is named."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

import cutbank
from cutbank.domain.compaction_events import Trigger, Trim
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.policies.catalog import POLICIES
from cutbank.domain.policies.policy import Policy, check_settings, setting
from cutbank.domain.ranges import Ranges
from cutbank.domain.window import Plan, Window


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


SEEN: list[int] = []
Planning = Callable[[Any, Window], Any]


def cutting(**plan: Any) -> Planning:
    """A plan for all windows that are not small."""
    given = {"cut": None, "reason": "why not", "summary_tokens": 300, **plan}
    return lambda _, window: Plan(**given) if len(window.items) > 9 else None


def another_each_time(_: Any, window: Window) -> Plan | None:
    SEEN.append(1)
    return Plan(window.after, f"the {len(SEEN)}th time", 300)


def forgets_a_block(_: Any, window: Window) -> Plan | None:
    window.items.pop()  # type: ignore[attr-defined]
    return None


def hides_a_block(_: Any, window: Window) -> Plan | None:
    window.hides[1] = None
    return None


def divides(_: Any, window: Window) -> Plan | None:
    return Plan(window.after // len(window.items), "by all", 300)


def bit_by_bit(_: Any, window: Window) -> Plan | None:
    items = window.open_to_cut
    return Plan(items[len(items) // 7].position, "a bit of it", 300) if len(items) > 9 else None


def only_if_asked(_: Any, window: Window) -> Plan | None:
    unasked = window.trigger is Trigger.THRESHOLD
    return None if unasked or len(window.items) < 9 else Plan(9, "it was asked", 300)


def test_a_plan_that_breaks_the_contract_is_named(subtests: pytest.Subtests) -> None:
    rows: list[tuple[Planning, str]] = [
        (lambda _, window: "all of it", "plan raises TypeError: it answers with str, not with a"),
        (divides, "an empty window.*: plan raises ZeroDivisionError"),
        (another_each_time, "it answers otherwise when it is asked again"),
        (forgets_a_block, "it changes the window"),
        (hides_a_block, "it changes the window"),
        (cutting(cut=-3), "it cuts at -3, outside the window"),
        (cutting(cut=10**9), "it cuts at 1000000000, outside the window"),
        (cutting(cut=3, reason=" "), "its plan gives no reason of one line"),
        (cutting(cut=3, summary_tokens=-1), "its plan has a summary of less than 0 tokens"),
        (cutting(drops=Ranges.of([10**6])), "it drops #1000000, which is not in the window"),
        (
            cutting(trims=(Trim(position=10**6, head=1),)),
            "it shortens #1000000, which is not in the window",
        ),
        (cutting(cut=9), "it has a plan and says that it does not fire"),
        (only_if_asked, "it fires, and has no plan but where it is asked"),
        (bit_by_bit, "after 20 compactions one upon the other it wants another one"),
    ]
    for plan, wrong in rows:
        never = {"fires": lambda _, window: False} if "not fire" in wrong else {"fires": always}
        broken: type[Policy] = dataclass(frozen=True)(
            type("Broken", (Sound,), {"plan": plan, **never})
        )

        with subtests.test(str(plan)), pytest.raises(AssertionError, match=f"sound: .*{wrong}"):
            cutbank.check_policy(broken)


def always(_: Any, window: Window) -> bool:
    return True


@dataclass
class Changing:
    """Not frozen."""

    name: ClassVar[str] = "changing"


@dataclass(frozen=True)
class Unchecked(Sound):
    """Takes any value."""

    def __post_init__(self) -> None:
        """Look at nothing."""


@dataclass(frozen=True)
class Undescribed(Sound):
    """Has a setting that nobody can read about."""

    more: int = 5


@dataclass(frozen=True)
class Unspeakable(Sound):
    """Has a setting that no file can give."""

    kinds: tuple[str, ...] = setting((), help="which")


@dataclass(frozen=True)
class Forgetful(Sound):
    """Is another one when it was stored."""

    extra: int = field(default=1, metadata={"unit": "", "help": "more"})

    def __post_init__(self) -> None:
        check_settings(self)
        object.__setattr__(self, "extra", self.extra + 1)


@dataclass(frozen=True)
class Shouting(Sound):
    """Has a name that no command line takes."""

    name: ClassVar[str] = "Sound!"


@dataclass(frozen=True)
class BadPreset(Sound):
    """Has a preset that it refuses itself."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"as_shipped": {"keep": 0}}


@dataclass(frozen=True)
class WordyFires(Sound):
    """Says more than yes or no."""

    def fires(self, window: Window) -> Any:
        return window.items


def test_a_class_that_is_no_policy_is_named(subtests: pytest.Subtests) -> None:
    rows: list[tuple[Any, str]] = [
        (Changing, r"Changing: Changing is not a @dataclass\(frozen=True\)"),
        (Unchecked, r"sound: keep may be \[None\]: call check\(self\) in __post_init__"),
        (Undescribed, r"more: declare each as setting\(default, help=...\)"),
        (Unspeakable, "kinds is .*; a setting is an int, float, bool or str"),
        (Forgetful, "it is another one when it is read back from its settings as JSON"),
        (Shouting, "its name is 'Sound!'; it takes small letters"),
        (BadPreset, "its preset @as_shipped is refused: sound: keep cannot be 0"),
        (WordyFires, "fires answers with .*, not with True or False"),
        (5, "int is not a @dataclass"),
    ]
    for policy, wrong in rows:
        with subtests.test(str(policy)), pytest.raises(AssertionError, match=wrong):
            cutbank.check_policy(policy)


def test_what_must_be_given_is_given() -> None:
    @dataclass(frozen=True)
    class Demanding(Sound):
        name: ClassVar[str] = "demanding"
        presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"short": {"keep": 1}}

        keep: int = setting(unit="blocks", least=1, help="stay word for word")

    cutbank.check_policy(Demanding)
    cutbank.check_policy(Demanding(3))


def test_a_long_list_is_cut_short() -> None:
    broken: type[Policy] = dataclass(frozen=True)(type("Broken", (Sound,), {"plan": divides}))

    with pytest.raises(AssertionError) as told:
        cutbank.check_policy(broken)

    assert len(str(told.value).splitlines()) <= 21
