"""The shape of a policy: a frozen value whose fields are its settings, and how those are read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from math import isfinite
from typing import Any, ClassVar, Protocol, TypeVar, get_args, get_type_hints

from ..errors import InvalidSettingError
from ..item import Item
from ..utilization import PruningResult, Utilization
from ..window import Plan, Window


class Policy(Protocol):
    """When, where and what to compact.

    Implementations are frozen dataclasses. Each field is a setting: an int, float, bool or str, or
    one of these or None, declared by `setting(...)`. `__post_init__` calls `check`, and then
    refuses settings that contradict each other with `refusal`.

    A policy may have `fires(window) -> bool` as well: whether its threshold is passed, told by what
    is in use and not by the blocks. It is asked before each call of a model, and so is
    `warning(window)`, if there is one: what is in use, where those who watch are to be told. One
    that prunes has `pruned(window, gone)`: what that came to. One that goes by tokens alone says so
    by `lets_be(limit)`, and is replayed the faster for it. And it may name, as class variables, its
    `alias`: the program it comes from; its `source`: the document; and its `presets`: settings by
    name, as `@as_shipped`.
    """

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def plan(self, window: Window, /) -> Plan | None:
        """Where to cut; None where this policy would not compact now."""
        ...


def is_due(policy: Policy, window: Window) -> bool:
    """Whether the policy would compact now, if its plan has to be asked for or not."""
    fires: Callable[[Window], bool] | None = getattr(policy, "fires", None)
    return fires(window) if fires else policy.plan(window) is not None


def quiet_below(policy: Policy, limit: int) -> int | None:
    """The most tokens in use at which it does nothing, where it goes by tokens alone: by what is in
    use, and by the sizes, kinds and messages of blocks. None where it looks at more than that."""
    most: Callable[[int], int | None] | None = getattr(policy, "quiet_below", None)
    return most(limit) if most else None


def find_warning(policy: Policy, window: Window) -> Utilization | None:
    """What is in use, where the policy has those who watch warned of it."""
    warning: Callable[[Window], Utilization | None] | None = getattr(policy, "find_warning", None)
    return warning(window) if warning else None


def describe_pruning(policy: Policy, window: Window, gone: Sequence[Item]) -> PruningResult | None:
    """What it took out of a window that these left; None for policies that do not prune."""
    pruned: Callable[[Window, Sequence[Item]], PruningResult] | None = getattr(
        policy, "describe_pruning", None
    )
    return pruned(window, gone) if pruned and gone else None


def setting(
    default: Any = MISSING,
    *,
    help: str,  # noqa: A002 - as the rest of the world calls it
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
    among: Iterable[str] = (),
) -> Any:
    """Declare a setting of a policy, as a field of its dataclass: its unit, bounds and purpose."""
    told: dict[str, Any] = {"unit": unit, "help": help, "among": tuple(map(str, among))}
    if least is not None:
        told["least"] = least
    if most is not None:
        told["most"] = most
    return field(default=default, metadata=told)


def get_presets(policy: Policy | type[Policy]) -> Mapping[str, Mapping[str, Any]]:
    """A policy's settings by the names that they go by together."""
    return getattr(policy, "presets", {})


_PolicyT = TypeVar("_PolicyT", bound=Policy)

NEVER_FIRES = 2**62
"""More tokens than there ever are: what a policy lets be that never fires."""

NO_VALUE = "none"
"""How text says that a setting is left to the policy."""
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_TYPE_NAMES: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class PolicySetting:
    """One field of a policy, as people are told of it."""

    name: str
    type: type
    default: Any
    """MISSING where the setting must be given."""
    unit: str
    help: str
    least: float | None
    most: float | None
    among: tuple[str, ...]
    may_be_none: bool

    @property
    def accepted_values(self) -> str:
        """What it may be, in words: `a whole number of tokens from 0, or none`."""
        words = " or ".join(self.among) or _TYPE_NAMES.get(self.type, "text")
        if self.unit.startswith("of "):  # a unit such as `of the limit`
            words = f"a fraction {self.unit}"
        elif self.unit and self.type in {int, float}:
            words += f" of {self.unit}"
        words += f" from {self.least:,}" if self.least is not None else ""
        words += f" up to {self.most:,}" if self.most is not None else ""
        return f"{words}, or {NO_VALUE}" if self.may_be_none else words

    def parse(self, text: str) -> Any:
        """The value that a text stands for; the text itself where it stands for none."""
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
        # Not isinstance: True is no number of tokens. But a whole number is a number.
        kinds = {int, float} if self.type is float else {self.type}
        if type(value) not in kinds or (self.among and value not in self.among):
            return False
        if type(value) is float and not isfinite(value):
            return False
        too_low = self.least is not None and value < self.least
        too_high = self.most is not None and value > self.most
        return not (too_low or too_high)


def list_settings(policy: Policy | type[Policy]) -> tuple[PolicySetting, ...]:
    """All settings that a policy has, in the order in which it declares them."""
    return _list_settings(policy if isinstance(policy, type) else type(policy))


# A backtest makes a policy for each cell, and its annotations are read anew each time.
@lru_cache(maxsize=64)
def _list_settings(policy_class: type[Policy]) -> tuple[PolicySetting, ...]:
    hints = get_type_hints(policy_class)
    listed: list[PolicySetting] = []
    for declared in fields(policy_class):
        types = get_args(hints[declared.name]) or (hints[declared.name],)
        listed.append(
            PolicySetting(
                name=declared.name,
                type=next(one for one in types if one is not type(None)),
                default=declared.default,
                unit=declared.metadata["unit"],
                help=declared.metadata["help"],
                least=declared.metadata.get("least"),
                most=declared.metadata.get("most"),
                among=tuple(declared.metadata.get("among", ())),
                may_be_none=type(None) in types,
            )
        )
    return tuple(listed)


def configure_policy(policy_class: type[_PolicyT], settings: Mapping[str, Any]) -> _PolicyT:
    """The policy with these settings; those not given keep their defaults.

    Values may be texts, as a command line or a file gives them, or what they stand for.
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
    """Refuse the first setting whose value is of the wrong type or out of range."""
    for setting in list_settings(policy):
        value = getattr(policy, setting.name)
        if not setting.is_valid(value):
            raise make_setting_error(policy, setting.name, f"cannot be {value!r}")


def make_setting_error(policy: Policy | type[Policy], name: str, wrong: str) -> InvalidSettingError:
    """The error that says what is wrong with a setting, and what it may be."""
    setting = next(setting for setting in list_settings(policy) if setting.name == name)
    return InvalidSettingError(
        f"{policy.name}: {name} {wrong}; it takes {setting.accepted_values} ({setting.help})"
    )
