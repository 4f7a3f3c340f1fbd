"""Every policy by name, and by the name of the program that it comes from."""

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidSettingError
from .policy import Policy, configured
from .reserve_headroom import ReserveHeadroom

POLICIES: dict[str, type[Policy]] = {policy.name: policy for policy in (ReserveHeadroom,)}
ALIASES = {"klaude-code": "reserve-headroom"}
DEFAULT = "reserve-headroom"


def policy_named(text: str, settings: Mapping[str, Any]) -> Policy:
    """The policy of that name or alias, with these settings."""
    policy_class = POLICIES.get(ALIASES.get(text, text))
    if policy_class is None:
        raise InvalidSettingError(f"there is no policy {text!r}; there is {_all_names()}")
    return configured(policy_class, settings)


def _all_names() -> str:
    aliases = {name: alias for alias, name in ALIASES.items()}
    return ", ".join(f"{name} ({aliases[name]})" if name in aliases else name for name in POLICIES)
