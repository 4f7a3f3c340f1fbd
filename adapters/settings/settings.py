"""Defines all settings, section by section, with defaults, units and help."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import PrivateAttr, Strict, model_validator

from ...domain.hooks import CompactionEventKind
from ...domain.policies.catalog import ALIASES
from ...domain.policies.policy import Policy
from ...domain.policies.scored_pruning import ScoredPruning
from .compaction_settings import CompactionSettings, ContextSettings, PinSettings, ShadowSettings
from .idle_settings import IdleSettings, MaintenanceSettings
from .policy_catalog import get_policy
from .section import (
    UNSET,
    Section,
    SettingOrigin,
    SettingPath,
    TextTuple,
    make_contradiction,
    section_setting,
)
from .summary_settings import SummarySettings

EventKinds = Annotated[
    tuple[Annotated[CompactionEventKind, Strict(strict=False)], ...], Strict(strict=False)
]


class TokenSettings(Section):
    """How tokens are counted that no provider has counted yet."""

    counter: Literal["auto", "chars", "o200k_base", "cl100k_base"] = section_setting(
        "auto", "auto and chars count characters until a provider reports; else name a vocabulary"
    )


class ModelSettings(Section):
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


class HookCommandSettings(Section):
    """A program that is told what happens, and may add instructions or veto."""

    on: EventKinds = section_setting(..., "the events that it is called for")
    command: TextTuple = section_setting(..., "the program and its arguments; no shell reads them")
    time_limit: float = section_setting(10.0, "when it is killed", unit="seconds", least=0.1)

    @model_validator(mode="after")
    def _check_command(self) -> Self:
        found: list[tuple[SettingPath, str]] = []
        if not self.on:
            found.append((("on",), "names no moment"))
        if not self.command or not self.command[0].strip():
            found.append((("command",), "names no program"))
        if found:
            raise make_contradiction(*found)
        return self


class HookSettings(Section):
    """Who is told of compactions."""

    commands: Annotated[tuple[HookCommandSettings, ...], Strict(strict=False)] = section_setting(
        (), "programs that are called for each event"
    )


class Settings(Section):
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
    shadow: ShadowSettings = ShadowSettings()

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
        return self._origins.get(path, UNSET)

    def with_origins(self, origins: Mapping[SettingPath, SettingOrigin]) -> Self:
        """Set the origins, and return the settings."""
        self._origins = origins
        return self
