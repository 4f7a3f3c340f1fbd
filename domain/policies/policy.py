"""Defines the shape of a policy, a frozen value whose fields are its settings, and reads these."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import lru_cache
from math import isfinite
from types import NoneType
from typing import Any, ClassVar, Protocol, TypeVar, get_args, get_type_hints

from ..compaction_events import Trigger
from ..context_limit import PruningResult, Utilization
from ..errors import InvalidSettingError, NothingToCompactError
from ..item import Item
from ..window import Plan, Window


class Policy(Protocol):
    """When, where and what to compact.

    Implementations are frozen dataclasses. Each field is a setting: an int, float, bool or str, or
    one of these or None, declared by `setting(...)`. `__post_init__` calls `check_settings`, and
    raises `make_setting_error` for settings that contradict each other.

    Optional methods:

    * `fires(window) -> bool`: whether the threshold is passed, judged by the tokens in use without
      reading the blocks. The store calls it before each call of a model.
    * `find_warning(window)`: the utilization if listeners are to be warned, or None; also called
      before each call.
    * `describe_pruning(window, gone)`: what a pruning removed.
    * `quiet_below(limit)`: the most tokens in use at which it does nothing, if tokens alone decide;
      replays are faster with it.

    Optional class variables: `alias`, the program it comes from; `source`, the document; and
    `presets`, settings by name, such as `@as_shipped`.
    """

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def plan(self, window: Window, /) -> Plan | None:
        """Return where to cut; None if this policy would not compact now."""
        ...


def is_due(policy: Policy, window: Window) -> bool:
    """Check whether the policy would compact now; asks for its plan only if it has no `fires`."""
    fires: Callable[[Window], bool] | None = getattr(policy, "fires", None)
    return fires(window) if fires else policy.plan(window) is not None


def quiet_below(policy: Policy, limit: int) -> int | None:
    """Return the most tokens in use at which the policy does nothing.

    None if it looks at more than the tokens in use and the sizes, kinds and messages of blocks.
    """
    most: Callable[[int], int | None] | None = getattr(policy, "quiet_below", None)
    return most(limit) if most else None


def find_warning(policy: Policy, window: Window) -> Utilization | None:
    """Return the utilization if the policy wants listeners to be warned of it, or None."""
    warning: Callable[[Window], Utilization | None] | None = getattr(policy, "find_warning", None)
    return warning(window) if warning else None


def describe_pruning(policy: Policy, window: Window, gone: Sequence[Item]) -> PruningResult | None:
    """Return what the policy removed from a window; None for policies that do not prune."""
    pruned: Callable[[Window, Sequence[Item]], PruningResult] | None = getattr(
        policy, "describe_pruning", None
    )
    return pruned(window, gone) if pruned and gone else None


def setting(
    default: Any = MISSING,
    *,
    help: str,  # noqa: A002 - the usual word
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
    among: Iterable[str] = (),
) -> Any:
    """Declare a setting of a policy, as a field of its dataclass: its unit, bounds and purpose."""
    described = {"unit": unit, "help": help, "least": least, "most": most}
    return field(default=default, metadata={**described, "among": tuple(map(str, among))})


def token_setting(default: int | None, *, help: str, least: int = 0) -> Any:  # noqa: A002
    """Declare a number of tokens."""
    return setting(default, help=help, unit="tokens", least=least)


def share_setting(default: float, *, help: str) -> Any:  # noqa: A002
    """Declare a share of the model's limit."""
    return setting(default, help=help, unit="of the limit", least=0, most=1)


def choice_setting(default: str, *others: str, help: str) -> Any:  # noqa: A002
    """Declare a choice between texts; without `others`, among the default's enumeration."""
    members: Iterable[str] = getattr(type(default), "__members__", {}).values()
    return setting(str(default), help=help, among=members or (default, *others))


def get_presets(policy: Policy | type[Policy]) -> Mapping[str, Mapping[str, Any]]:
    return getattr(policy, "presets", {})


_PolicyT = TypeVar("_PolicyT", bound=Policy)

NEVER_FIRES = 2**62
"""More tokens than any context has: `quiet_below` of a policy that never fires."""

NO_VALUE = "none"
"""The text for a setting of None."""
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_TYPE_NAMES: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class PolicySetting:
    """One field of a policy, as listed for users."""

    name: str
    type: type
    default: Any
    """MISSING if the setting is required."""
    may_be_none: bool
    unit: str
    help: str
    least: float | None = None
    most: float | None = None
    among: tuple[str, ...] = ()

    @property
    def accepted_values(self) -> str:
        """The accepted values in words: `a whole number of tokens from 0, or none`."""
        words = " or ".join(self.among) or _TYPE_NAMES.get(self.type, "text")
        if self.unit.startswith("of "):  # a unit such as `of the limit`
            words = f"a fraction {self.unit}"
        elif self.unit and self.type in {int, float}:
            words += f" of {self.unit}"
        words += f" from {self.least:,}" if self.least is not None else ""
        words += f" up to {self.most:,}" if self.most is not None else ""
        return f"{words}, or {NO_VALUE}" if self.may_be_none else words

    def parse(self, text: str) -> Any:
        """Return the value of a text, or the text itself if it has no valid form."""
        word = text.strip().lower()
        if self.may_be_none and word == NO_VALUE:
            return None
        if self.type is bool:
            return _TRUTHS.get(word, text)
        try:
            return self.type(text)
        except ValueError:
            return text

    def is_valid(self, value: Any) -> bool:
        if value is None:
            return self.may_be_none
        # Not isinstance, because True is not a number of tokens; but an int is a valid float.
        kinds = {int, float} if self.type is float else {self.type}
        if type(value) not in kinds or (self.among and value not in self.among):
            return False
        if type(value) is float and not isfinite(value):
            return False
        too_low = self.least is not None and value < self.least
        too_high = self.most is not None and value > self.most
        return not (too_low or too_high)


def list_settings(policy: Policy | type[Policy]) -> tuple[PolicySetting, ...]:
    """Return all settings of a policy in the order of their declaration."""
    return _list_settings(policy if isinstance(policy, type) else type(policy))


# Cached because a backtest makes a policy for each cell, and reading annotations is slow.
@lru_cache(maxsize=64)
def _list_settings(policy_class: type[Policy]) -> tuple[PolicySetting, ...]:
    hints = get_type_hints(policy_class)
    listed: list[PolicySetting] = []
    for one in fields(policy_class):
        types = get_args(hints[one.name]) or (hints[one.name],)
        kind = next(one for one in types if one is not NoneType)
        may_be_none = NoneType in types
        listed.append(PolicySetting(one.name, kind, one.default, may_be_none, **one.metadata))
    return tuple(listed)


def configure_policy(policy_class: type[_PolicyT], settings: Mapping[str, Any]) -> _PolicyT:
    """Return the policy with these settings; others keep their defaults.

    Values may be texts, from a command line or a file, or already typed.
    """
    known = {setting.name: setting for setting in list_settings(policy_class)}
    for name in settings:
        if name not in known:
            raise InvalidSettingError(
                f"{policy_class.name} has no setting {name!r}; it has {', '.join(known) or 'none'}"
            )
    for name, setting in known.items():
        if name not in settings and setting.default is MISSING:
            raise make_setting_error(policy_class, name, "is missing")
    return policy_class(
        **{
            name: known[name].parse(value) if isinstance(value, str) else value
            for name, value in settings.items()
        }
    )


def check_settings(policy: Policy) -> None:
    """Raise InvalidSettingError for the first setting of the wrong type or out of range."""
    for setting in list_settings(policy):
        value = getattr(policy, setting.name)
        if not setting.is_valid(value):
            raise make_setting_error(policy, setting.name, f"cannot be {value!r}")


def make_setting_error(policy: Policy | type[Policy], name: str, wrong: str) -> InvalidSettingError:
    """Return the error that describes a faulty setting and the values it accepts."""
    setting = next(setting for setting in list_settings(policy) if setting.name == name)
    return InvalidSettingError(
        f"{policy.name}: {name} {wrong}; it takes {setting.accepted_values} ({setting.help})"
    )


def write_reserve_reason(window: Window, reserve: int, keep: int) -> str:
    """Return the reason of a plan that leaves a reserve free and keeps the newest tokens."""
    in_use = f"{window.used_tokens:,} tokens in use"
    if window.limit > 0:
        in_use += f" of {window.limit:,}, of which {reserve:,} stay free"
    return f"{window.trigger}: {in_use}; the newest {keep:,} are kept"


@dataclass(frozen=True, slots=True)
class ThresholdState:
    """The state of a session for a policy, without a request to compact."""

    fires: bool
    used_tokens: int
    """Tokens in use, by the window's own count."""
    limit: int
    threshold: int | None
    """The fewest tokens in use at which it fires; None if something else decides."""


def measure_threshold(policy: Policy, window: Window) -> ThresholdState:
    """Return the policy's state for the window, whatever trigger the window has."""
    unasked = replace(window, trigger=Trigger.THRESHOLD)
    return ThresholdState(
        fires=_fires(policy, unasked),
        used_tokens=window.used_tokens,
        limit=window.limit,
        threshold=find_threshold(policy, window),
    )


def find_threshold(policy: Policy, window: Window) -> int | None:
    """Return the fewest tokens in use at which the policy fires on an otherwise equal window.

    None if tokens in use make no difference, for example because the policy measures the blocks
    itself, or if it has no `fires`.
    """
    if not hasattr(policy, "fires"):
        return None

    def fires_at(tokens: int) -> bool:
        return _fires(
            policy, replace(window, in_use=tokens, usage=tokens, trigger=Trigger.THRESHOLD)
        )

    below, reached = -1, 2 * max(window.limit, window.used_tokens, 1)
    if fires_at(0) or not fires_at(reached):
        return None
    while reached - below > 1:
        middle = (below + reached) // 2
        below, reached = (below, middle) if fires_at(middle) else (middle, reached)
    return reached


def _fires(policy: Policy, window: Window) -> bool:
    try:
        return is_due(policy, window)
    except NothingToCompactError:
        return True  # it is due, although nothing can leave
