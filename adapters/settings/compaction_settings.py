"""Defines when sessions are compacted, what always stays, and who writes summaries."""

import re
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Strict,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from ...domain.blocks import BlockKind
from ...domain.compaction_terms import PinRules
from ...domain.errors import InvalidSettingError
from ...domain.models import CONTEXT_BY_BETA
from ...domain.policies.catalog import DEFAULT_POLICY
from ...domain.policies.policy import get_presets, parse_values
from ...domain.policies.scored_pruning import ScoredPruning
from ...domain.settings import make_section, section_setting
from ...domain.trims import MIN_SHOWN_TOKENS
from .policy_catalog import find_policy_class, get_policy, list_policy_names, list_unusable
from .section import (
    FileSection,
    SettingPath,
    TextTuple,
    describe_unknown_name,
    find_mistakes,
    make_contradiction,
    show_value,
)

SUMMARIZER_NAMES = ("extractive", "llm", "command")
"""The built-in summarizers; users' own are entry points of the group below."""
ENTRY_POINT_GROUP = "cutbank.summarizers"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def _check_beta(beta: str) -> str:
    if beta not in CONTEXT_BY_BETA:
        wrong = describe_unknown_name(beta, CONTEXT_BY_BETA, "beta that enlarges a window")
        raise ValueError(f"is {show_value(beta)}, which {wrong}")
    return beta


Kinds = Annotated[tuple[Annotated[BlockKind, Strict(strict=False)], ...], Strict(strict=False)]
Betas = Annotated[tuple[Annotated[str, AfterValidator(_check_beta)], ...], Strict(strict=False)]


class CompactionSettings(FileSection):
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
            wrong = f", which {describe_unknown_name(name, list_policy_names(), 'policy')}"
            why = f"; {broken}" if broken else wrong
            raise ValueError(f"is {show_value(text)}{why}") from None
        if at and preset not in presets:
            wrong = describe_unknown_name(preset, presets, f"preset of {name}")
            raise ValueError(f"is {show_value(text)}, and {preset!r} {wrong}")
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
        section = make_section(policy)
        try:
            section.model_validate(parse_values(policy, given))
        except ValidationError as error:
            found = list(find_mistakes(error, section, f"setting of {policy.name}"))
            # A preset may give what is missing here.
            found = [one for one in found if one[0][0] in given]
            if found:
                raise make_contradiction(*found) from None
        try:
            get_policy(text, **given)
        except InvalidSettingError as error:
            raise ValueError(str(error)) from None
        return given

    @property
    def has_own_policy(self) -> bool:
        return "policy" in self.model_fields_set


class ContextSettings(FileSection):
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


class PinSettings(FileSection):
    """What stays in the view word for word, whatever a policy says."""

    first_prompt: bool = section_setting(True, "keep a session's first prompt, which says its goal")
    kinds: Kinds = section_setting((BlockKind.DEVELOPER,), "keep blocks of these kinds")

    def make_rules(self) -> PinRules:
        return PinRules(self.first_prompt, frozenset(self.kinds))


class SummarySettings(FileSection):
    """Who writes the text that stands for what left, and how."""

    chain: TextTuple = section_setting(
        ("extractive",), "summarizers in the order in which they are tried, until one succeeds"
    )
    time_limit: float = section_setting(
        120.0,
        "how long one summarizer may take, retries and waits included",
        unit="seconds",
        least=0.1,
    )
    retries: int = section_setting(
        3, "more of them after a failure that may pass", unit="attempts", least=0, most=100
    )
    model: str | None = section_setting(
        None, "writes the summaries of `llm`; none is a cheaper one than the agent's"
    )
    base_url: str | None = section_setting(
        None, "where the provider of `llm` listens; none is its usual address"
    )
    key_from: str | None = section_setting(
        None, "the variable that holds the key of `llm`; none is the provider's usual one"
    )
    source: Literal["previous", "originals"] = section_setting(
        "previous", "read the blocks behind an earlier summary from that summary, or from the log"
    )
    prompt: Literal["fresh", "served-prefix", "policy"] = section_setting(
        "fresh",
        "in cutbank's own sections, after the served request, or as the policy says",
    )
    command: TextTuple = section_setting(
        (), "the program of the summarizer `command`, and its arguments; no shell reads them"
    )
    instructions: str | None = section_setting(
        None, "what the model gets in addition to its prompt, for each summary"
    )

    @field_validator("chain")
    @classmethod
    def _check_summarizers(cls, chain: tuple[str, ...]) -> tuple[str, ...]:
        if not chain:
            raise ValueError("names no summarizer; `extractive` needs nothing")
        known = set(SUMMARIZER_NAMES)
        if not known.issuperset(chain):
            known |= {one.name for one in entry_points(group=ENTRY_POINT_GROUP)}
        found: list[tuple[SettingPath, str]] = []
        for index, name in enumerate(chain):
            if name not in known:
                wrong = describe_unknown_name(name, sorted(known), "summarizer")
                found.append(((index,), f"is {show_value(name)}, which {wrong}"))
            elif name in chain[:index]:
                found.append(((index,), f"names {name} a second time: leave it out"))
            elif "extractive" in chain[:index]:
                wrong = "comes after extractive, which needs nothing: move it forward"
                found.append(((index,), wrong))
        if found:
            raise make_contradiction(*found)
        return chain

    @field_validator("key_from")
    @classmethod
    def _check_variable(cls, name: str | None) -> str | None:
        if name is not None and not _VARIABLE.fullmatch(name):
            # Do not repeat the value, which may be the key itself.
            raise ValueError("is not the name of a variable, such as MY_PROVIDER_KEY")
        return name

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        found: list[tuple[SettingPath, str]] = []
        if "command" in self.chain and not self.command:
            found.append((("chain",), "names command, and summary.command names no program"))
        if self.source == "originals" and self.prompt != "fresh":
            wrong = (
                f"is {self.prompt}, which builds on the earlier summary, and summary.source is "
                "originals, which passes it by: change one of them"
            )
            found.append((("prompt",), wrong))
        if found:
            raise make_contradiction(*found)
        return self
