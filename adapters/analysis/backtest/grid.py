"""Makes the setups of a backtest: each policy, with each of its settings, limits and budgets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from pydantic import JsonValue

from ....domain.backtest.cell import Setup
from ....domain.errors import InvalidSettingError
from ....domain.policies.policy import settings_of
from ...settings.policy_catalog import policy_class_named, policy_named
from ..replaying.deciders import AS_RECORDED, NOBODY, SIZED, SUMMARISERS

UNDECIDING = (NOBODY, AS_RECORDED)
"""What is named like a policy and asks none: it has no settings, and no summary is written."""
LIMIT = 32_000
"""Tokens of a prompt where nobody says: most recorded sessions outgrow it."""
MOST = 2**53
"""Tokens that can be named: programs that read the answer may know no larger whole numbers."""


@dataclass(frozen=True)
class Grid:
    """What is to be compared; all is checked when it is made.

    `policies` are `NAME[@PRESET]`, `none` or `recorded`. `settings` are values by name: those of
    `keep_tokens` go to every policy that has such a setting, those of `pi.keep_tokens` to one.
    Raises InvalidSettingError, in one line, for what does not exist or cannot be.
    """

    policies: Sequence[str]
    limits: Sequence[int] = (LIMIT,)
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    budgets: Sequence[int | None] = (None,)
    summariser: str = SUMMARISERS[0]
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
                if number is not None and number > MOST:
                    raise InvalidSettingError(f"a {name} is {MOST:,} tokens at most")
        if self.summariser not in SUMMARISERS:
            known = ", ".join(SUMMARISERS)
            raise InvalidSettingError(
                f"there is no summariser {self.summariser!r} for replays; there is {known}"
            )
        if self.summariser == SIZED and None in self.budgets:
            raise InvalidSettingError(f"summaries by {SIZED} need a budget: that is their size")
        self._check_settings()

    def setups(self) -> tuple[Setup, ...]:
        """All of them, by limit, then policy, settings and budget; none twice."""
        found = {
            setup.model_dump_json(): setup
            for limit in self.limits
            for policy in self.policies
            for setup in self._of(policy, limit)
        }
        return tuple(found.values())

    def _of(self, policy: str, limit: int) -> Iterator[Setup]:
        if policy in UNDECIDING:
            yield Setup(policy=policy, limit=limit, model=self.model)
            return
        values = self._values(policy)
        for chosen in product(*values.values()):
            given = dict(zip(values, chosen, strict=True))
            made = policy_named(policy, given)
            settings: dict[str, JsonValue] = {name: getattr(made, name) for name in given}
            for budget in self.budgets:
                yield Setup(
                    policy=policy,
                    settings=settings,
                    limit=limit,
                    summariser=self.summariser,
                    budget=budget,
                    model=self.model,
                )

    def _values(self, policy: str) -> dict[str, Sequence[Any]]:
        """What is to be tried of each of a policy's settings; its own go before everybody's."""
        names = [one.name for one in settings_of(_class_of(policy))]
        values: dict[str, Sequence[Any]] = {}
        for key, tried in self.settings.items():
            of, _, name = key.rpartition(".")
            if name in names and (_is_meant(of, policy) or (not of and name not in values)):
                values[name] = tried
        return values

    def _check_settings(self) -> None:
        asked = [policy for policy in self.policies if policy not in UNDECIDING]
        for policy in asked:
            policy_named(policy, {})
        for key, tried in self.settings.items():
            of, _, name = key.rpartition(".")
            meant = [policy for policy in asked if not of or _is_meant(of, policy)]
            if not asked:
                raise InvalidSettingError(f"{key}: {' and '.join(self.policies)} take no settings")
            if not meant:
                raise InvalidSettingError(f"{key}: {of} is not in this backtest")
            if not any(name in (one.name for one in settings_of(_class_of(p))) for p in meant):
                raise InvalidSettingError(f"no policy of this backtest has a setting {key!r}")
            if not tried:
                raise InvalidSettingError(f"{key} has no value to try")
        self.setups()  # whose values have to fit


def _class_of(policy: str) -> Any:
    return policy_class_named(policy.partition("@")[0])


def _is_meant(name: str, policy: str) -> bool:
    """Whether a name is this policy's, with its preset or without, or its alias."""
    if not name:
        return False
    if "@" in name:
        return name == policy
    return name not in UNDECIDING and _class_of(name) is _class_of(policy)
