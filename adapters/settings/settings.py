"""Every setting: section by section, with its default, its unit and what it is for."""

import re
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Annotated, Any, Literal, Self

from pydantic import PrivateAttr, Strict, ValidationInfo, field_validator, model_validator

from ...domain.blocks import Kind
from ...domain.errors import InvalidSettingError
from ...domain.pins import PinRules
from ...domain.policies.catalog import ALIASES, DEFAULT, POLICIES, policy_named
from ...domain.policies.policy import Policy, settings_of
from ..happenings import Moment
from .nearest import names_only
from .origin import UNSET, Origin
from .section import VALUE, Section, contradiction, setting
from .toml_lines import Path

SUMMARISERS = ("extractive", "llm", "command")
"""Those that come with cutbank; users' own are entry points of the group below."""
ENTRY_POINTS = "cutbank.summarisers"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

Texts = Annotated[tuple[str, ...], Strict(strict=False)]
Kinds = Annotated[tuple[Annotated[Kind, Strict(strict=False)], ...], Strict(strict=False)]
Moments = Annotated[tuple[Annotated[Moment, Strict(strict=False)], ...], Strict(strict=False)]


class CompactionSettings(Section):
    """When a session is compacted, and by which policy."""

    policy: str = setting(
        DEFAULT, help="decides when and where to compact; `cutbank policies` lists them"
    )
    settings: Mapping[str, Any] = setting({}, help="the policy's own settings")
    limit: int | None = setting(
        None, unit="tokens", least=1, help="what the context holds; none is what the model holds"
    )
    auto: bool = setting(True, help="compact before a call when the policy says so")
    once_a_turn: bool = setting(False, help="compact by threshold at most once in a turn")
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
    def _is_a_policy(cls, name: str) -> str:
        if ALIASES.get(name, name) not in POLICIES:
            known = [*POLICIES, *ALIASES]
            raise contradiction(((), f"{VALUE}, which {names_only(name, known, 'policy')}"))
        return name

    @field_validator("settings")
    @classmethod
    def _are_the_policys(cls, given: Mapping[str, Any], info: ValidationInfo) -> Mapping[str, Any]:
        name: str | None = info.data.get("policy")
        if name is None:  # which is wrong itself, and said so
            return given
        policy = POLICIES[ALIASES.get(name) or name]
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
                policy_named(name, given)
            except InvalidSettingError as error:
                found.append(((), str(error)))
        if found:
            raise contradiction(*found)
        return given

    def chosen(self) -> Policy:
        """The policy with its settings."""
        return policy_named(self.policy, self.settings)


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


class SummarySettings(Section):
    """Who writes the text that stands for what left, and how."""

    chain: Texts = setting(
        ("extractive",), help="summarisers in the order in which they are tried, until one succeeds"
    )
    time_limit: float = setting(
        120.0,
        unit="seconds",
        least=0.1,
        help="how long one summariser may take, retries and waits included",
    )
    retries: int = setting(
        3, unit="attempts", least=0, most=100, help="more of them after a failure that may pass"
    )
    backoff: float = setting(
        1.0,
        unit="seconds",
        least=0,
        most=30,
        help="the wait before the first retry; twice as long each time, up to 30",
    )
    model: str | None = setting(
        None, help="writes the summaries of `llm`; none is a cheaper one than the agent's"
    )
    base_url: str | None = setting(
        None, help="where the provider of `llm` listens; none is its usual address"
    )
    key_from: str | None = setting(
        None, help="the variable that holds the key of `llm`; none is the provider's usual one"
    )
    source: Literal["previous", "originals"] = setting(
        "previous", help="what an earlier summary stands for is read from it, or from the log"
    )
    prompt: Literal["fresh", "iterative", "served-prefix"] = setting(
        "fresh",
        help="write anew, update the earlier summary, or ask behind the request that was served",
    )
    with_facts: bool = setting(True, help="hand the facts that `extractive` finds to the model")
    command: Texts = setting(
        (), help="the program of the summariser `command`, and its arguments; no shell reads them"
    )
    instructions: str | None = setting(
        None, help="what the model is told besides its prompt, in each summary"
    )

    @field_validator("chain")
    @classmethod
    def _are_summarisers(cls, chain: tuple[str, ...]) -> tuple[str, ...]:
        if not chain:
            raise contradiction(((), "names no summariser; `extractive` needs nothing"))
        known = set(SUMMARISERS)
        if not known.issuperset(chain):
            known |= {one.name for one in entry_points(group=ENTRY_POINTS)}
        found: list[tuple[Path, str]] = []
        for index, name in enumerate(chain):
            if name not in known:
                wrong = names_only(name, sorted(known), "summariser")
                found.append(((index,), f"{VALUE}, which {wrong}"))
            elif name in chain[:index]:
                found.append(((index,), f"names {name} a second time: leave it out"))
            elif "extractive" in chain[:index]:
                found.append(
                    (
                        (index,),
                        "comes after extractive, which needs nothing: move it forward",
                    )
                )
        if found:
            raise contradiction(*found)
        return chain

    @field_validator("key_from")
    @classmethod
    def _is_a_variable(cls, name: str | None) -> str | None:
        if name is not None and not _VARIABLE.fullmatch(name):
            # Not repeated: it may be the key itself.
            raise contradiction(((), "is no name of a variable, such as MY_PROVIDER_KEY"))
        return name

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        found: list[tuple[Path, str]] = []
        if "command" in self.chain and not self.command:
            found.append((("chain",), "names command, and summary.command names no program"))
        if self.command and not self.command[0].strip():
            found.append((("command", 0), "is empty; it takes the name of a program"))
        if self.source == "originals" and self.prompt != "fresh":
            wrong = (
                f"is {self.prompt}, which builds on the earlier summary, and summary.source is "
                f"originals, which passes it by: change one of them"
            )
            found.append((("prompt",), wrong))
        if found:
            raise contradiction(*found)
        return self


class TokenSettings(Section):
    """How tokens are counted that no provider has counted yet."""

    counter: Literal["auto", "chars", "o200k_base", "cl100k_base"] = setting(
        "auto", help="auto is the model's own where its vocabulary is there, else characters"
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
    pins: PinSettings = PinSettings()
    summary: SummarySettings = SummarySettings()
    tokens: TokenSettings = TokenSettings()
    models: Mapping[str, ModelSettings] = setting({}, help="what is known better of a model")
    hooks: HookSettings = HookSettings()

    _origins: Mapping[Path, Origin] = PrivateAttr(default_factory=dict)

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
