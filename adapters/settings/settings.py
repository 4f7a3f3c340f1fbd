"""Defines all settings, section by section, with defaults, units and help."""

import re
from collections.abc import Mapping
from datetime import time as clock_time
from datetime import timedelta
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field, PrivateAttr, Strict, field_validator, model_validator

from ...domain.hooks import CompactionEventKind
from ...domain.idle_rules import IdleRules, QuietHours
from ...domain.policies.catalog import ALIASES
from ...domain.policies.policy import Policy
from ...domain.policies.scored_pruning import ScoredPruning
from ...domain.settings import NO_VALUE, section_setting
from .compaction_settings import (
    CompactionSettings,
    ContextSettings,
    PinSettings,
    SummarySettings,
)
from .policy_catalog import get_policy
from .section import (
    FileSection,
    SettingOrigin,
    SettingPath,
    TextTuple,
    find_nearest,
    make_contradiction,
    show_value,
)

_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d"
_AGE = re.compile(r"([1-9]\d{0,5}) *(hour|day|week)s?")
_HOURS = re.compile(rf"({_TIME})-({_TIME})(?: +(\S+))?")

EventKinds = Annotated[
    tuple[Annotated[CompactionEventKind, Strict(strict=False)], ...],
    Strict(strict=False),
]


class TokenSettings(FileSection):
    """How tokens are counted that no provider has counted yet."""

    counter: Literal["auto", "chars", "o200k_base", "cl100k_base"] = section_setting(
        "auto", "auto and chars count characters until a provider reports; else name a vocabulary"
    )


class ModelSettings(FileSection):
    """What a model holds and costs, where what is known of it is missing or wrong."""

    context: int | None = section_setting(None, "input and output together", unit="tokens", least=1)
    output: int | None = section_setting(None, "the longest answer", unit="tokens", least=1)
    input_usd: float | None = section_setting(
        None, "input that no cache holds", unit="dollars per million tokens", least=0
    )
    cache_read_usd: float | None = section_setting(
        None, "input that the cache holds", unit="dollars per million tokens", least=0
    )
    cache_write_usd: float | None = section_setting(
        None, "input that is put into the cache", unit="dollars per million tokens", least=0
    )
    output_usd: float | None = section_setting(
        None, "output, reasoning included", unit="dollars per million tokens", least=0
    )

    @model_validator(mode="after")
    def _check_output(self) -> Self:
        if self.context and self.output and self.output > self.context:
            raise make_contradiction(
                (("output",), f"is {self.output:,}, more than the context of {self.context:,}")
            )
        return self


class HookCommandSettings(FileSection):
    """A program that is told what happens, and may add instructions or veto."""

    on: EventKinds = section_setting(..., "the events that it is called for")
    command: Annotated[TextTuple, Field(min_length=1)] = section_setting(
        ..., "the program and its arguments; no shell reads them"
    )
    time_limit: float = section_setting(10.0, "when it is killed", unit="seconds", least=0.1)


class HookSettings(FileSection):
    """Who is told of compactions."""

    commands: Annotated[tuple[HookCommandSettings, ...], Strict(strict=False)] = section_setting(
        (), "programs that are called for each event"
    )


class IdleSettings(FileSection):
    """When sessions at rest are compacted, and what it may cost."""

    time: float = section_setting(
        300.0, "after the last append, before a session is idle", unit="seconds", least=0
    )
    least_utilization: float = section_setting(
        0.5, "views that fill less are left as they are", unit="of the limit", least=0, most=1
    )
    serve: Literal["now", "at-threshold"] = section_setting(
        "now", "serve a compaction at once, or prepare it until the policy fires"
    )
    concurrency: int = section_setting(
        2, "compacted at once by one worker", unit="sessions", least=1, most=64
    )
    spend_per_hour: float | None = section_setting(
        1.0, "by all workers together, in any 60 minutes", unit="dollars", least=0
    )
    spend_per_session: float | None = section_setting(
        None, "then its summaries are written by extractive", unit="dollars", least=0
    )
    quiet_hours: str | None = section_setting(
        None, "when no work is begun: 08:00-20:00, or 08:00-20:00 Europe/Berlin; else in UTC"
    )
    namespaces: TextTuple = section_setting((), "the namespaces to compact; an empty list is all")
    lease: float | None = section_setting(
        None,
        "others keep off a session that was begun; none is as long as summaries may take",
        unit="seconds",
        least=0.1,
    )

    @field_validator("quiet_hours")
    @classmethod
    def _check_quiet_hours(cls, hours: str | None) -> str | None:
        if hours is None:
            return None
        shown = f"is {show_value(hours)}"
        if not (found := _HOURS.fullmatch(hours.strip())):
            raise ValueError(f"{shown}; it takes hours as 22:00-06:30 Europe/Berlin")
        if found[1] == found[2]:
            raise ValueError(f"{shown}, which never ends: no work would be begun at all")
        if found[3] and found[3] not in available_timezones():
            near = find_nearest(found[3], available_timezones())
            meant = f"; did you mean {near}?" if near else ", as Europe/Berlin is one"
            raise ValueError(f"{shown}, whose zone is not a time zone{meant}")
        return hours

    def parse_quiet_hours(self) -> QuietHours | None:
        found = _HOURS.fullmatch((self.quiet_hours or "").strip())
        if found is None:
            return None
        begins, ends = map(clock_time.fromisoformat, found.group(1, 2))
        return QuietHours(begins, ends, ZoneInfo(found[3] or "UTC"))

    def make_rules(self) -> IdleRules:
        return IdleRules(
            idle_time_s=self.time,
            least_utilization=self.least_utilization,
            concurrency=self.concurrency,
            hourly_usd=self.spend_per_hour,
            session_usd=self.spend_per_session,
            quiet_hours=self.parse_quiet_hours(),
            namespaces=self.namespaces,
            lease_s=self.lease,
            activate=self.serve == "now",
        )


class MaintenanceSettings(FileSection):
    """The backups that a worker makes in idle hours."""

    backup_folder: str | None = section_setting(
        None, "the folder for backups, which must exist; none makes no backups"
    )
    backup_every: float = section_setting(24.0, "how often one is made", unit="hours", least=0.1)
    backup_keep: int = section_setting(7, "how many are kept, the newest", unit="backups", least=1)


class RetentionSettings(FileSection):
    """How long sessions are kept before they are erased."""

    keep: str | None = section_setting(
        None, "after the newest event of a session: 180 days, 26 weeks, 12 hours; none is for ever"
    )
    namespaces: Mapping[str, str] = section_setting({}, "the same for single namespaces, by name")

    @field_validator("keep")
    @classmethod
    def _check_age(cls, age: str | None) -> str | None:
        _parse_age(age)
        return age

    @field_validator("namespaces")
    @classmethod
    def _check_ages(cls, ages: Mapping[str, str]) -> Mapping[str, str]:
        for age in ages.values():
            _parse_age(age)
        return ages

    @property
    def keeps_all(self) -> bool:
        return _parse_age(self.keep) is None and not any(map(_parse_age, self.namespaces.values()))

    def find_age(self, namespace: str) -> timedelta | None:
        """Return how long the sessions of a namespace are kept; None for ever."""
        return _parse_age(self.namespaces.get(namespace, self.keep))


def _parse_age(text: str | None) -> timedelta | None:
    """Return the time that `180 days` says; None for `none`. Raises ValueError."""
    if text is None or text == NO_VALUE:
        return None
    found = _AGE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"is {show_value(text)}; write it as 180 days, 26 weeks or 12 hours")
    return timedelta(**{f"{found[2]}s": int(found[1])})


class Settings(FileSection):
    compaction: CompactionSettings = CompactionSettings()
    context: ContextSettings | None = section_setting(
        None, "prunes by the policy scored-pruning, where compaction.policy names no other"
    )
    pins: PinSettings = PinSettings()
    summary: SummarySettings = SummarySettings()
    tokens: TokenSettings = TokenSettings()
    models: Mapping[str, ModelSettings] = section_setting(
        {}, "facts about a model that replace the catalog's"
    )
    hooks: HookSettings = HookSettings()
    idle: IdleSettings = IdleSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    retention: RetentionSettings = RetentionSettings()

    _origins: Mapping[SettingPath, SettingOrigin] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _check_single_policy(self) -> Self:
        compaction = self.compaction
        if self.context and compaction.settings and not compaction.has_own_policy:
            wrong = (
                f"is of {compaction.policy}, and [context] asks for {ScoredPruning.name}: "
                "name compaction.policy, or take one of the two out"
            )
            raise make_contradiction((("compaction", "settings"), wrong))
        return self

    @property
    def policy_name(self) -> str:
        """The agent's policy: the named one, or that of [context] if the section is present."""
        asks = self.context is not None and not self.compaction.has_own_policy
        return ScoredPruning.name if asks else self.compaction.policy

    @property
    def policy(self) -> Policy:
        return self.make_policy({})

    def make_policy(self, given: Mapping[str, Any]) -> Policy:
        """Return the agent's policy; `given` overrides its settings."""
        name, _, _ = self.policy_name.partition("@")
        prunes = self.context is not None and ALIASES.get(name, name) == ScoredPruning.name
        of_context = self.context.make_policy_settings() if self.context and prunes else {}
        return get_policy(self.policy_name, **{**of_context, **self.compaction.settings, **given})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]  # tables have none

    def find_origin(self, *path: str | int) -> SettingOrigin:
        """Return the origin of a value: `find_origin("compaction", "limit")`."""
        return self._origins.get(path, SettingOrigin())

    def with_origins(self, origins: Mapping[SettingPath, SettingOrigin]) -> Self:
        """Set the origins, and return the settings."""
        self._origins = origins
        return self
