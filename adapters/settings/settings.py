"""Every setting: section by section, with its default, its unit and what it is for."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import PrivateAttr, Strict, model_validator

from ...domain.hooks import Moment
from ...domain.policies.catalog import ALIASES
from ...domain.policies.policy import Policy
from ...domain.policies.scored_pruning import ScoredPruning
from .chore_settings import ChoreSettings
from .compaction_settings import CompactionSettings, PinSettings
from .context_settings import ContextSettings
from .idle_settings import IdleSettings
from .origin import UNSET, Origin
from .policy_catalog import policy_named
from .section import Section, Texts, contradiction, setting
from .shadow_settings import ShadowSettings
from .summary_settings import SummarySettings
from .toml_lines import Path

Moments = Annotated[tuple[Annotated[Moment, Strict(strict=False)], ...], Strict(strict=False)]


class TokenSettings(Section):
    """How tokens are counted that no provider has counted yet."""

    counter: Literal["auto", "chars", "o200k_base", "cl100k_base"] = setting(
        "auto", help="auto and chars go by characters, until a provider reports; else a vocabulary"
    )


class ModelSettings(Section):
    """What a model holds and costs, where what is known of it is missing or wrong."""

    context: int | None = setting(None, unit="tokens", least=1, help="input and output together")
    output: int | None = setting(None, unit="tokens", least=1, help="the longest answer")
    input_usd: float | None = setting(
        None, unit="dollars per million tokens", least=0, help="input that no cache holds"
    )
    cache_read_usd: float | None = setting(
        None, unit="dollars per million tokens", least=0, help="input that the cache holds"
    )
    cache_write_usd: float | None = setting(
        None, unit="dollars per million tokens", least=0, help="input that is put into the cache"
    )
    output_usd: float | None = setting(
        None, unit="dollars per million tokens", least=0, help="output, reasoning included"
    )

    @model_validator(mode="after")
    def _holds_its_output(self) -> Self:
        if self.context and self.output and self.output > self.context:
            raise contradiction(
                (("output",), f"is {self.output:,}, more than the context of {self.context:,}")
            )
        return self


class HookCommandSettings(Section):
    """A program that is told what happens, and may add instructions or veto."""

    on: Moments = setting(help="the moments that it is told of")
    command: Texts = setting(help="the program and its arguments; no shell reads them")
    time_limit: float = setting(10.0, unit="seconds", least=0.1, help="when it is killed")

    @model_validator(mode="after")
    def _can_be_started(self) -> Self:
        found: list[tuple[Path, str]] = []
        if not self.on:
            found.append((("on",), "names no moment"))
        if not self.command or not self.command[0].strip():
            found.append((("command",), "names no program"))
        if found:
            raise contradiction(*found)
        return self


class HookSettings(Section):
    """Who is told of compactions."""

    commands: Annotated[tuple[HookCommandSettings, ...], Strict(strict=False)] = setting(
        (), help="programs that are told what happens"
    )


class Settings(Section):
    """All settings; each knows where it came from."""

    compaction: CompactionSettings = CompactionSettings()
    context: ContextSettings | None = setting(
        None, help="prunes by the policy scored-pruning, where compaction.policy names no other"
    )
    pins: PinSettings = PinSettings()
    summary: SummarySettings = SummarySettings()
    tokens: TokenSettings = TokenSettings()
    models: Mapping[str, ModelSettings] = setting({}, help="what is known better of a model")
    hooks: HookSettings = HookSettings()
    idle: IdleSettings = IdleSettings()
    chores: ChoreSettings = ChoreSettings()
    shadow: ShadowSettings = ShadowSettings()

    _origins: Mapping[Path, Origin] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _one_policys_settings(self) -> Self:
        compaction = self.compaction
        if self.context and compaction.settings and not compaction.names_its_policy:
            wrong = (
                f"is of {compaction.policy}, and [context] asks for {ScoredPruning.name}: "
                "name compaction.policy, or take one of the two out"
            )
            raise contradiction((("compaction", "settings"), wrong))
        return self

    @property
    def policy_name(self) -> str:
        """The agent's policy: the one that is named; else that of [context], where this stands."""
        asks = self.context is not None and not self.compaction.names_its_policy
        return ScoredPruning.name if asks else self.compaction.policy

    @property
    def policy(self) -> Policy:
        """The agent's policy with its settings."""
        return self.policy_with({})

    def policy_with(self, given: Mapping[str, Any]) -> Policy:
        """The agent's policy with its settings, and these before them."""
        name, _, _ = self.policy_name.partition("@")
        prunes = self.context is not None and ALIASES.get(name, name) == ScoredPruning.name
        of_context = self.context.of_policy() if self.context and prunes else {}
        return policy_named(self.policy_name, {**of_context, **self.compaction.settings, **given})

    def __eq__(self, other: object) -> bool:
        """Where a value came from makes no difference."""
        return isinstance(other, Settings) and self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]  # tables have none

    def origin(self, *path: str | int) -> Origin:
        """Where a value came from: `origin("compaction", "limit")`."""
        return self._origins.get(path, UNSET)

    def from_sources(self, origins: Mapping[Path, Origin]) -> Self:
        """These settings, knowing where they came from."""
        self._origins = origins
        return self
