"""Makes the setups of a backtest: policies with their settings, limits and budgets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from pydantic import JsonValue

from ....domain.backtest_cell import Setup
from ....domain.errors import InvalidSettingError
from ....domain.settings import list_settings
from ...settings.policy_catalog import find_policy_class, get_policy
from ..deciders import NO_POLICY, RECORDED_POLICY, REPLAY_SUMMARIZERS, SummaryOptions

FIXED_DECIDERS = (NO_POLICY, RECORDED_POLICY)
"""Names that are no policies: they have no settings and write no summaries."""
DEFAULT_GRID_LIMIT = 32_000
"""Default prompt limit in tokens; most recorded sessions exceed it."""


@dataclass(frozen=True)
class Grid:
    """The setups to compare, validated on creation.

    `policies` are `NAME[@PRESET]`, `none` or `recorded`. `settings` are values by name:
    `keep_tokens` applies to every policy that has this setting, `pi.keep_tokens` to one. Raises
    InvalidSettingError, in one line, for invalid names and values.
    """

    policies: Sequence[str]
    limits: Sequence[int] = (DEFAULT_GRID_LIMIT,)
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    budgets: Sequence[int | None] = (None,)
    summarizer: str = REPLAY_SUMMARIZERS[0]
    model: str | None = None

    def __post_init__(self) -> None:
        if not self.policies:
            raise InvalidSettingError("a backtest needs policies: see `cutbank policies`")
        for name, numbers in (("limit", self.limits), ("budget", self.budgets)):
            if not numbers:
                raise InvalidSettingError(f"a backtest needs a {name}")
            for number in numbers:
                if number is not None and number < 1:
                    raise InvalidSettingError(f"a {name} is 1 token or more, not {number:,}")
        for budget in self.budgets:
            SummaryOptions(self.summarizer, budget)
        self._check_settings()

    def make_setups(self) -> tuple[Setup, ...]:
        """Return all setups without duplicates, by limit, then policy, settings and budget."""
        found = {
            setup.model_dump_json(): setup
            for limit in self.limits
            for policy in self.policies
            for setup in self._make_policy_setups(policy, limit)
        }
        return tuple(found.values())

    def _make_policy_setups(self, policy: str, limit: int) -> Iterator[Setup]:
        if policy in FIXED_DECIDERS:
            yield Setup(policy=policy, limit=limit, model=self.model)
            return
        values = self._setting_values(policy)
        for chosen in product(*values.values()):
            given = dict(zip(values, chosen, strict=True))
            made = get_policy(policy, **given)
            settings: dict[str, JsonValue] = {name: getattr(made, name) for name in given}
            for budget in self.budgets:
                yield Setup(
                    policy=policy,
                    settings=settings,
                    limit=limit,
                    summarizer=self.summarizer,
                    budget=budget,
                    model=self.model,
                )

    def _setting_values(self, policy: str) -> dict[str, Sequence[Any]]:
        """Return the values of each setting of a policy; specific names override general ones."""
        names = _list_setting_names(policy)
        values: dict[str, Sequence[Any]] = {}
        for key, tried in self.settings.items():
            of, _, name = key.rpartition(".")
            if name in names and (_names_policy(of, policy) or (not of and name not in values)):
                values[name] = tried
        return values

    def _check_settings(self) -> None:
        asked = [policy for policy in self.policies if policy not in FIXED_DECIDERS]
        for policy in asked:
            get_policy(policy)
        for key, tried in self.settings.items():
            of, _, name = key.rpartition(".")
            meant = [policy for policy in asked if not of or _names_policy(of, policy)]
            if not any(name in _list_setting_names(policy) for policy in meant):
                raise InvalidSettingError(f"no policy of this backtest has a setting {key!r}")
            if not tried:
                raise InvalidSettingError(f"{key} has no value to try")
        self.make_setups()  # validate all values


def _find_policy_class(policy: str) -> Any:
    return find_policy_class(policy.partition("@")[0])


def _list_setting_names(policy: str) -> list[str]:
    return [one.name for one in list_settings(_find_policy_class(policy))]


def _names_policy(name: str, policy: str) -> bool:
    """Return whether a name is this policy's, with or without its preset, or its alias."""
    if not name:
        return False
    if "@" in name:
        return name == policy
    return name not in FIXED_DECIDERS and _find_policy_class(name) is _find_policy_class(policy)
