"""Every policy by name, by the name of the program that it comes from, and by preset."""

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidSettingError
from .pi import Pi
from .policy import Policy, configured, presets_of
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
DEFAULT = "reserve-headroom"


def policy_named(text: str, settings: Mapping[str, Any]) -> Policy:
    """The policy `NAME[@PRESET]`, by its name or alias, with these settings over the preset's."""
    name, _, preset = text.partition("@")
    policy_class = POLICIES.get(ALIASES.get(name, name))
    if policy_class is None:
        raise unknown(name, POLICIES)
    return with_preset(policy_class, preset, settings)


def with_preset(policy_class: type[Policy], preset: str, settings: Mapping[str, Any]) -> Policy:
    """The policy with these settings over the preset's; an empty name is none."""
    return configured(policy_class, {**_preset(policy_class, preset), **settings})


def unknown(name: str, policies: Mapping[str, type[Policy]], *more: str) -> InvalidSettingError:
    """The error that says which policies there are, and what else is known of it."""
    known = ", ".join(map(_both_names, policies.values()))
    return InvalidSettingError("; ".join([f"there is no policy {name!r}; there is {known}", *more]))


def alias_of(policy: Policy | type[Policy]) -> str | None:
    """The other name that a policy goes by: the program that it comes from."""
    return getattr(policy, "alias", None)


def _preset(policy_class: type[Policy], name: str) -> Mapping[str, Any]:
    presets = presets_of(policy_class)
    if not name:
        return {}
    if name not in presets:
        known = ", ".join(f"@{preset}" for preset in presets) or "none"
        raise InvalidSettingError(f"{policy_class.name} has no preset @{name}; it has {known}")
    return presets[name]


def _both_names(policy: type[Policy]) -> str:
    alias = alias_of(policy)
    return f"{policy.name} ({alias})" if alias else policy.name
