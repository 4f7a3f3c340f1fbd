"""Defines when and by which policy sessions are compacted, and what always stays."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Strict, ValidationInfo, field_validator

from ...domain.blocks import Kind
from ...domain.compaction_terms import PinRules
from ...domain.errors import InvalidSettingError
from ...domain.models import CONTEXT_BY_BETA
from ...domain.policies.catalog import DEFAULT_POLICY
from ...domain.policies.policy import get_presets, list_settings
from ...domain.policies.scored_pruning import ScoredPruning
from ...domain.trims import MIN_SHOWN_TOKENS
from .policy_catalog import find_policy_class, get_policy, list_policy_names, list_unusable
from .section import (
    VALUE_PLACEHOLDER,
    Section,
    SettingPath,
    TextTuple,
    describe_unknown_name,
    make_contradiction,
    section_setting,
)

Kinds = Annotated[tuple[Annotated[Kind, Strict(strict=False)], ...], Strict(strict=False)]


def _check_beta(beta: str) -> str:
    if beta not in CONTEXT_BY_BETA:
        wrong = describe_unknown_name(beta, CONTEXT_BY_BETA, "beta that enlarges a window")
        raise ValueError(f"{VALUE_PLACEHOLDER}, which {wrong}")
    return beta


Betas = Annotated[tuple[Annotated[str, AfterValidator(_check_beta)], ...], Strict(strict=False)]


class CompactionSettings(Section):
    """When a session is compacted, and by which policy."""

    policy: str = section_setting(
        DEFAULT_POLICY,
        "decides when and where to compact, NAME or NAME@PRESET of `cutbank policies`",
    )
    settings: Mapping[str, Any] = section_setting({}, "the policy's own settings")
    limit: int | None = section_setting(
        None, "the tokens of the context; none takes the model's", unit="tokens", least=1
    )
    betas: Betas = section_setting(
        (), "what the agent's calls ask for: with context-1m-2025-08-07 a Sonnet holds 1,000,000"
    )
    auto: bool = section_setting(True, "compact before a call when the policy says so")
    once_a_turn: bool = section_setting(False, "compact by threshold at most once in a turn")
    prepare_at: float | None = section_setting(
        None,
        "from which on a summary is written ahead, while the agent works; none is never",
        unit="of the policy's threshold",
        least=0.1,
        most=1,
    )
    minimum_gain: float = section_setting(
        0.1,
        "what a compaction by threshold has to save, or it is not done",
        unit="of the view",
        least=0,
        most=1,
    )
    worthwhile: Literal["always", "price"] = section_setting(
        "always", "whether a compaction by threshold must pay for itself by price"
    )
    expected_calls: int = section_setting(
        20, "calls still to come, over which it has to pay for itself", unit="calls", least=1
    )
    instructions: str | None = section_setting(
        None, "what every summary should care about, in addition to what a caller asks for"
    )

    @field_validator("policy")
    @classmethod
    def _check_policy(cls, text: str) -> str:
        name, at, preset = text.partition("@")
        try:
            presets = get_presets(find_policy_class(name))
        except InvalidSettingError:
            broken = next((one for one in list_unusable() if one.entry == name), None)
            wrong = f"which {describe_unknown_name(name, list_policy_names(), 'policy')}"
            why = f"; {broken}" if broken else f", {wrong}"
            raise ValueError(VALUE_PLACEHOLDER + why) from None
        if at and preset not in presets:
            wrong = describe_unknown_name(preset, presets, f"preset of {name}")
            raise ValueError(f"{VALUE_PLACEHOLDER}, and {preset!r} {wrong}")
        return text

    @field_validator("settings")
    @classmethod
    def _check_policy_settings(
        cls, given: Mapping[str, Any], info: ValidationInfo
    ) -> Mapping[str, Any]:
        text: str | None = info.data.get("policy")
        if text is None:  # a mistake that is already reported
            return given
        policy = find_policy_class(text.partition("@")[0])
        known = {one.name: one for one in list_settings(policy)}
        found: list[tuple[SettingPath, str]] = []
        for key, value in given.items():
            one = known.get(key)
            if one is None:
                wrong = describe_unknown_name(key, known, f"setting of {policy.name}")
                found.append(((key,), wrong))
            elif not one.is_valid(one.parse(value) if isinstance(value, str) else value):
                found.append(((key,), f"{VALUE_PLACEHOLDER}; it takes {one.accepted_values}"))
        if found:
            raise make_contradiction(*found)
        try:
            get_policy(text, **given)
        except InvalidSettingError as error:
            raise ValueError(str(error)) from None
        return given

    @property
    def has_own_policy(self) -> bool:
        return "policy" in self.model_fields_set


class ContextSettings(Section):
    """Old messages are pruned, by the policy scored-pruning; nothing is summed up."""

    enabled: bool = section_setting(True, "prune old messages when the context is nearly full")
    compaction_threshold: float = section_setting(
        0.80, "in use from which on it prunes", unit="of the limit", least=0.05, most=1
    )
    protected_turns: int = section_setting(
        2, "newest turns that are never pruned", unit="turns", least=0
    )
    cooldown_seconds: float = section_setting(
        60.0, "between two prunings by threshold", unit="seconds", least=0
    )
    max_tool_response_tokens: int | None = section_setting(
        None,
        "that are shown of a tool's answer; the log keeps all of it",
        unit="tokens",
        least=MIN_SHOWN_TOKENS,
    )

    def make_policy_settings(self) -> dict[str, Any]:
        """Return the policy's settings that this section contains."""
        return {
            name: getattr(self, name)
            for name in self.model_fields_set & ScoredPruning.__dataclass_fields__.keys()
        }


class PinSettings(Section):
    """What stays in the view word for word, whatever a policy says."""

    first_prompt: bool = section_setting(True, "keep a session's first prompt, which says its goal")
    kinds: Kinds = section_setting((Kind.DEVELOPER,), "keep blocks of these kinds")
    most: float = section_setting(
        0.05, "the largest block that is kept by these rules", unit="of the limit", least=0, most=1
    )

    def make_rules(self) -> PinRules:
        return PinRules(self.first_prompt, frozenset(self.kinds), self.most)


class ShadowSettings(Section):
    """Which policies decide beside live sessions, and are never served."""

    policies: TextTuple = section_setting(
        (), "each decides before each call on a lineage of its own: NAME or NAME@PRESET"
    )

    @field_validator("policies")
    @classmethod
    def _check_policies(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for at, text in enumerate(given):
            try:
                get_policy(text)
            except InvalidSettingError as error:
                raise make_contradiction(((at,), f"{VALUE_PLACEHOLDER}: {error}")) from None
            if text in given[:at]:
                raise make_contradiction(((at,), f"names {text} a second time: leave it out"))
        return given
