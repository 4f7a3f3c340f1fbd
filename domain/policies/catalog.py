"""Lists every policy by name, by the program that it copies, and by preset; combines them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..cached_property import cached_property
from ..errors import InvalidSettingError, NothingToCompactError
from ..settings import setting
from ..window import Plan, Window
from .clear_tool_results import ClearToolResults
from .forget_middle import ForgetMiddle
from .layered import Layered
from .newest_messages import NewestMessages
from .pi import Pi
from .policy import (
    Policy,
    ThresholdPolicy,
    configure_policy,
    get_presets,
    is_due,
    make_setting_error,
)
from .preserve_zone import PreserveZone
from .reserve_headroom import ReserveHeadroom
from .retention_window import RetentionWindow
from .rolling_timeline import RollingTimeline
from .scored_pruning import ScoredPruning
from .tail_turns import TailTurns
from .turn_interval import TurnInterval
from .user_messages import UserMessages


@dataclass(frozen=True)
class Combine(ThresholdPolicy):
    """Policies in sequence: the first that has something to do decides.

    Each is written `NAME[@PRESET]`, and may be followed by its settings as `KEY=VALUE`.
    """

    name: ClassVar[str] = "combine"

    policies: str = setting(
        "clear-tool-results, reserve-headroom", help="which, in this order, with commas between"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.parts

    @cached_property
    def parts(self) -> tuple[Policy, ...]:
        return tuple(self._build(words.split()) for words in self.policies.split(","))

    @property
    def fires_by_tokens(self) -> bool:
        return all(getattr(part, "fires_by_tokens", False) for part in self.parts)

    def fires(self, window: Window) -> bool:
        return any(is_due(part, window) for part in self.parts)

    def find_plan(self, window: Window) -> Plan | None:
        nothing: NothingToCompactError | None = None
        for part in self.parts:
            try:
                plan = part.plan(window)
            except NothingToCompactError as error:
                nothing = error
            else:
                if plan is not None:
                    return plan
        if nothing is not None:
            raise nothing
        return None

    def _build(self, words: list[str]) -> Policy:
        name, _, preset = (words[0] if words else "").partition("@")
        policy = POLICIES.get(ALIASES.get(name, name))
        if policy is None or policy is Combine:
            raise make_setting_error(self, "policies", f"cannot hold {name!r}")
        pairs = [word.partition("=") for word in words[1:]]
        return build_with_preset(policy, preset, {key: value for key, _, value in pairs})


POLICIES: dict[str, type[Policy]] = {
    policy.name: policy
    for policy in (
        RollingTimeline,
        ReserveHeadroom,
        ScoredPruning,
        RetentionWindow,
        PreserveZone,
        Pi,
        Layered,
        ForgetMiddle,
        UserMessages,
        TailTurns,
        NewestMessages,
        TurnInterval,
        ClearToolResults,
        Combine,
    )
}
ALIASES: dict[str, str] = {
    alias: name for name, policy in POLICIES.items() if (alias := getattr(policy, "alias", None))
}
DEFAULT_POLICY = "layered"


def build_with_preset(
    policy_class: type[Policy], preset: str, settings: Mapping[str, Any]
) -> Policy:
    """Return the policy with these settings over the preset's; an empty name means no preset."""
    presets = get_presets(policy_class)
    if preset and preset not in presets:
        known = ", ".join(f"@{name}" for name in presets) or "none"
        raise InvalidSettingError(f"{policy_class.name} has no preset @{preset}; it has {known}")
    original = find_original(policy_class, preset)
    return configure_policy(original, settings, presets.get(preset, {}))


def find_original(policy_class: type[Policy], preset: str) -> type[Policy]:
    """Return the class that answers as an original program did, or else the policy itself."""
    if not preset:
        return policy_class
    from .reference import ORIGINALS  # noqa: PLC0415 - only who names a preset pays for it

    return ORIGINALS.get((policy_class, preset), policy_class)


def find_alias(policy: Policy | type[Policy]) -> str | None:
    """Return the name of the program that a policy copies, if any."""
    return getattr(policy, "alias", None)
