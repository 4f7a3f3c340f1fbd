"""Lists every policy by name, by the name of the program it copies, and by preset."""

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidSettingError
from .pi import Pi
from .policy import Policy, configure_policy, get_presets
from .preserve_zone import PreserveZone
from .reserve_headroom import ReserveHeadroom
from .retention_window import RetentionWindow
from .rolling_timeline import RollingTimeline
from .scored_pruning import ScoredPruning

POLICIES: dict[str, type[Policy]] = {
    policy.name: policy
    for policy in (
        RollingTimeline,
        ReserveHeadroom,
        ScoredPruning,
        RetentionWindow,
        PreserveZone,
        Pi,
    )
}
ALIASES: dict[str, str] = {
    alias: name for name, policy in POLICIES.items() if (alias := getattr(policy, "alias", None))
}
DEFAULT_POLICY = "reserve-headroom"


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
