"""Defines the shape of a policy, a frozen value whose fields are its settings, and reads these."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar

from pydantic import ValidationError

from ..blocks import Block
from ..compaction_events import Trigger
from ..context_limit import PruningResult, Utilization
from ..errors import InvalidSettingError, NothingToCompactError
from ..item import WindowItem
from ..settings import QUIRK, list_settings, make_section, setting
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

    Optional class variables: `alias`, the program it comes from; `source`, the document;
    `presets`, settings by name, such as `@as_shipped`; and `fires_by_tokens`, whether the tokens in
    use and the limit alone decide that it fires, which makes replays faster.
    """

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def plan(self, window: Window, /) -> Plan | None:
        """Return where to cut; None if this policy would not compact now."""
        ...


@dataclass(frozen=True)
class ThresholdPolicy(ABC):
    """A policy with checked settings that plans nothing unasked before it fires."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_settings(self)

    @abstractmethod
    def fires(self, window: Window) -> bool:
        """Check whether the threshold is passed; never if it is measured by an unknown limit."""

    @abstractmethod
    def find_plan(self, window: Window) -> Plan | None:
        """Return where to cut; None if this policy would not compact now."""

    def plan(self, window: Window) -> Plan | None:
        if window.trigger is Trigger.THRESHOLD and not self.fires(window):
            return None
        return self.find_plan(window)


def is_due(policy: Policy, window: Window) -> bool:
    """Check whether the policy would compact now; asks for its plan only if it has no `fires`."""
    fires: Callable[[Window], bool] | None = getattr(policy, "fires", None)
    return fires(window) if fires else policy.plan(window) is not None


def quiet_below(policy: Policy, limit: int) -> int | None:
    """Return the most tokens in use at which the policy does nothing; None if more decides."""
    if not getattr(policy, "fires_by_tokens", False):
        return None
    # A block that is larger than all limits, so that none of the tokens in use are the request's.
    block = WindowItem(position=1, block=Block.user(""), turn=1, tokens=2**60)
    threshold = find_threshold(policy, Window((block,), 1, limit))
    return None if threshold is None else threshold - 1


def find_warning(policy: Policy, window: Window) -> Utilization | None:
    """Return the utilization if the policy wants listeners to be warned of it, or None."""
    warning: Callable[[Window], Utilization | None] | None = getattr(policy, "find_warning", None)
    return warning(window) if warning else None


def describe_pruning(
    policy: Policy, window: Window, gone: Sequence[WindowItem]
) -> PruningResult | None:
    """Return what the policy removed from a window; None for policies that do not prune."""
    pruned: Callable[[Window, Sequence[WindowItem]], PruningResult] | None = getattr(
        policy, "describe_pruning", None
    )
    return pruned(window, gone) if pruned and gone else None


def token_setting(default: int | None, *, help: str, least: int = 0) -> Any:  # noqa: A002
    """Declare a number of tokens."""
    return setting(default, help=help, unit="tokens", least=least)


def share_setting(default: float, *, help: str) -> Any:  # noqa: A002
    """Declare a share of the model's limit."""
    return setting(default, help=help, unit="of the limit", least=0, most=1)


def quirk(preset: str) -> Any:
    """Declare the field by which a request records that it follows an original program."""
    return field(default=preset, metadata={QUIRK: True})


def get_presets(policy: Policy | type[Policy]) -> Mapping[str, Mapping[str, Any]]:
    return getattr(policy, "presets", {})


_PolicyT = TypeVar("_PolicyT", bound=Policy)


def configure_policy(
    policy_class: type[_PolicyT],
    settings: Mapping[str, Any],
    preset: Mapping[str, Any] = MappingProxyType({}),
) -> _PolicyT:
    """Return the policy with these settings over a preset's fields; others keep their defaults.

    Values may be texts, from a command line or a file, or already typed.
    """
    known = [one.name for one in list_settings(policy_class)]
    fields = policy_class.__dataclass_fields__
    for name in (*settings, *preset):
        if name not in known and (name in settings or name not in fields):
            raise InvalidSettingError(
                f"{policy_class.name} has no setting {name!r}; it has {', '.join(known) or 'none'}"
            )
    given = {**preset, **settings}
    for one in list_settings(policy_class):
        if one.name not in given and one.default is MISSING:
            raise make_setting_error(policy_class, one.name, "is missing")
    return policy_class(**parse_values(policy_class, given))


def parse_values(policy_class: type[Policy], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with the values of texts."""
    known = {one.name: one for one in list_settings(policy_class)}
    return {
        name: known[name].parse(value) if isinstance(value, str) and name in known else value
        for name, value in given.items()
    }


def check_settings(policy: Policy) -> None:
    """Raise InvalidSettingError for the first setting of the wrong type or out of range."""
    given = {one.name: getattr(policy, one.name) for one in list_settings(policy)}
    for name in find_faults(type(policy), given):
        raise make_setting_error(policy, name, f"cannot be {given[name]!r}")


def find_faults(policy_class: type[Policy], given: Mapping[str, Any]) -> list[str]:
    """Return the given settings that have a value of the wrong type or out of range."""
    try:
        make_section(policy_class).model_validate(given)
    except ValidationError as error:
        return [str(one["loc"][0]) for one in error.errors() if one["type"] != "missing"]
    return []


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
