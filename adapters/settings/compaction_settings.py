"""Defines when and by which policy sessions are compacted, and what always stays."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Strict, ValidationInfo, field_validator

from ...domain.blocks import Kind
from ...domain.errors import InvalidSettingError
from ...domain.models import CONTEXT_BY_BETA
from ...domain.pins import PinRules
from ...domain.policies.catalog import DEFAULT_POLICY
from ...domain.policies.policy import get_presets, list_settings
from .name_suggestions import describe_unknown_name
from .policy_catalog import find_policy_class, get_policy, list_policy_names, list_unusable
from .section import VALUE_PLACEHOLDER, Section, TextTuple, make_contradiction, section_setting
from .toml_lines import SettingPath

Kinds = Annotated[tuple[Annotated[Kind, Strict(strict=False)], ...], Strict(strict=False)]


class CompactionSettings(Section):
    """When a session is compacted, and by which policy."""

    policy: str = section_setting(
        DEFAULT_POLICY,
        help="decides when and where to compact, NAME or NAME@PRESET of `cutbank policies`",
    )
    settings: Mapping[str, Any] = section_setting({}, help="the policy's own settings")
    limit: int | None = section_setting(
        None, unit="tokens", least=1, help="what the context holds; none is what the model holds"
    )
    betas: TextTuple = section_setting(
        (),
        help="what the agent's calls ask for: with context-1m-2025-08-07 a Sonnet holds 1,000,000",
    )
    auto: bool = section_setting(True, help="compact before a call when the policy says so")
    once_a_turn: bool = section_setting(False, help="compact by threshold at most once in a turn")
    prepare_at: float | None = section_setting(
        None,
        unit="of the policy's threshold",
        least=0.1,
        most=1,
        help="from which on a summary is written ahead, while the agent works; none is never",
    )
    minimum_gain: float = section_setting(
        0.1,
        unit="of the view",
        least=0,
        most=1,
        help="what a compaction by threshold has to save, or it is not done",
    )
    worthwhile: Literal["always", "price"] = section_setting(
        "always", help="whether a compaction by threshold must pay for itself by price"
    )
    expected_calls: int = section_setting(
        20, unit="calls", least=1, help="calls still to come, over which it has to pay for itself"
    )
    instructions: str | None = section_setting(
        None, help="what every summary should care about, in addition to what a caller asks for"
    )

    @field_validator("policy")
    @classmethod
    def _check_policy(cls, text: str) -> str:
        name, at, preset = text.partition("@")
        try:
            policy = find_policy_class(name)
        except InvalidSettingError:
            broken = next((one for one in list_unusable() if one.entry == name), None)
            why = (
                f"; {broken}"
                if broken
                else f", which {describe_unknown_name(name, list_policy_names(), 'policy')}"
            )
            raise make_contradiction(((), VALUE_PLACEHOLDER + why)) from None
        if at and preset not in get_presets(policy):
            known = get_presets(policy)
            raise make_contradiction(
                (
                    (),
                    f"{VALUE_PLACEHOLDER}, and {preset!r} "
                    + describe_unknown_name(preset, known, f"preset of {name}"),
                )
            )
        return text

    @field_validator("betas")
    @classmethod
    def _check_betas(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        found: list[tuple[SettingPath, str]] = [
            (
                (at,),
                f"{VALUE_PLACEHOLDER}, which "
                + describe_unknown_name(beta, CONTEXT_BY_BETA, "beta that enlarges a window"),
            )
            for at, beta in enumerate(given)
            if beta not in CONTEXT_BY_BETA
        ]
        if found:
            raise make_contradiction(*found)
        return given

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
        found: list[tuple[SettingPath, str]] = [
            ((key,), describe_unknown_name(key, known, f"setting of {policy.name}"))
            for key in given
            if key not in known
        ]
        for key, value in given.items():
            one = known.get(key)
            if one and not one.is_valid(one.parse(value) if isinstance(value, str) else value):
                found.append(((key,), f"{VALUE_PLACEHOLDER}; it takes {one.accepted_values}"))
        if not found:
            try:
                get_policy(text, **given)
            except InvalidSettingError as error:
                found.append(((), str(error)))
        if found:
            raise make_contradiction(*found)
        return given

    @property
    def has_own_policy(self) -> bool:
        return "policy" in self.model_fields_set


class PinSettings(Section):
    """What stays in the view word for word, whatever a policy says."""

    first_prompt: bool = section_setting(
        True, help="keep a session's first prompt, which says its goal"
    )
    kinds: Kinds = section_setting((Kind.DEVELOPER,), help="keep blocks of these kinds")
    most: float = section_setting(
        0.05,
        unit="of the limit",
        least=0,
        most=1,
        help="the largest block that is kept by these rules",
    )

    def make_rules(self) -> PinRules:
        return PinRules(self.first_prompt, frozenset(self.kinds), self.most)
