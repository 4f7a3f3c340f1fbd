"""When a session is compacted, by which policy, and what stays whatever it says."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Strict, ValidationInfo, field_validator

from ...domain.blocks import Kind
from ...domain.errors import InvalidSettingError
from ...domain.model_limits import LARGER_BY_BETA
from ...domain.pins import PinRules
from ...domain.policies.catalog import DEFAULT
from ...domain.policies.policy import presets_of, settings_of
from .nearest import names_only
from .policy_catalog import names, policy_class_named, policy_named, unusable
from .section import VALUE, Section, Texts, contradiction, setting
from .toml_lines import Path

Kinds = Annotated[tuple[Annotated[Kind, Strict(strict=False)], ...], Strict(strict=False)]


class CompactionSettings(Section):
    """When a session is compacted, and by which policy."""

    policy: str = setting(
        DEFAULT, help="decides when and where to compact, NAME or NAME@PRESET of `cutbank policies`"
    )
    settings: Mapping[str, Any] = setting({}, help="the policy's own settings")
    limit: int | None = setting(
        None, unit="tokens", least=1, help="what the context holds; none is what the model holds"
    )
    betas: Texts = setting(
        (),
        help="what the agent's calls ask for: with context-1m-2025-08-07 a Sonnet holds 1,000,000",
    )
    auto: bool = setting(True, help="compact before a call when the policy says so")
    once_a_turn: bool = setting(False, help="compact by threshold at most once in a turn")
    prepare_at: float | None = setting(
        None,
        unit="of the policy's threshold",
        least=0.1,
        most=1,
        help="from which on a summary is written ahead, while the agent works; none is never",
    )
    minimum_gain: float = setting(
        0.1,
        unit="of the view",
        least=0,
        most=1,
        help="what a compaction by threshold has to save, or it is not done",
    )
    worthwhile: Literal["always", "price"] = setting(
        "always", help="whether a compaction by threshold must pay for itself by price"
    )
    expected_calls: int = setting(
        20, unit="calls", least=1, help="calls still to come, over which it has to pay for itself"
    )
    instructions: str | None = setting(
        None, help="what every summary should care about, besides what is asked for"
    )

    @field_validator("policy")
    @classmethod
    def _is_a_policy(cls, text: str) -> str:
        name, at, preset = text.partition("@")
        try:
            policy = policy_class_named(name)
        except InvalidSettingError:
            broken = next((one for one in unusable() if one.entry == name), None)
            why = f"; {broken}" if broken else f", which {names_only(name, names(), 'policy')}"
            raise contradiction(((), VALUE + why)) from None
        if at and preset not in presets_of(policy):
            known = presets_of(policy)
            raise contradiction(
                ((), f"{VALUE}, and {preset!r} {names_only(preset, known, f'preset of {name}')}")
            )
        return text

    @field_validator("betas")
    @classmethod
    def _are_known(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        found: list[tuple[Path, str]] = [
            (
                (at,),
                f"{VALUE}, which {names_only(beta, LARGER_BY_BETA, 'beta that enlarges a window')}",
            )
            for at, beta in enumerate(given)
            if beta not in LARGER_BY_BETA
        ]
        if found:
            raise contradiction(*found)
        return given

    @field_validator("settings")
    @classmethod
    def _are_the_policys(cls, given: Mapping[str, Any], info: ValidationInfo) -> Mapping[str, Any]:
        text: str | None = info.data.get("policy")
        if text is None:  # which is wrong itself, and said so
            return given
        policy = policy_class_named(text.partition("@")[0])
        known = {one.name: one for one in settings_of(policy)}
        found: list[tuple[Path, str]] = [
            ((key,), names_only(key, known, f"setting of {policy.name}"))
            for key in given
            if key not in known
        ]
        for key, value in given.items():
            one = known.get(key)
            if one and not one.fits(one.read(value) if isinstance(value, str) else value):
                found.append(((key,), f"{VALUE}; it takes {one.takes}"))
        if not found:
            try:
                policy_named(text, given)
            except InvalidSettingError as error:
                found.append(((), str(error)))
        if found:
            raise contradiction(*found)
        return given

    @property
    def names_its_policy(self) -> bool:
        """Whether somebody said which policy."""
        return "policy" in self.model_fields_set


class PinSettings(Section):
    """What stays in the view word for word, whatever a policy says."""

    first_prompt: bool = setting(True, help="keep a session's first prompt, which says its goal")
    kinds: Kinds = setting((Kind.DEVELOPER,), help="keep blocks of these kinds")
    most: float = setting(
        0.05,
        unit="of the limit",
        least=0,
        most=1,
        help="the largest block that is kept by these rules",
    )

    def rules(self) -> PinRules:
        return PinRules(self.first_prompt, frozenset(self.kinds), self.most)
