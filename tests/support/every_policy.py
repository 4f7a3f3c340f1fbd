"""Every policy and preset that there is, with settings that small windows can be held to."""

from collections.abc import Iterator

from cutbank import InvalidSettingError, Policy, get_policy
from cutbank.domain.policies.catalog import POLICIES
from cutbank.domain.policies.policy import get_presets
from cutbank.domain.settings import list_settings

USUAL_LIMIT = 200_000
"""What the documents' settings in tokens are made for."""


def every_name() -> list[str]:
    return [
        name
        for policy in POLICIES.values()
        for name in (policy.name, *(f"{policy.name}@{preset}" for preset in get_presets(policy)))
    ]


def fitted(name: str, limit: int) -> Policy:
    """The policy, its settings in tokens as much smaller as the limit is; unless they must not."""
    policy = get_policy(name)
    for setting in dict(_in_tokens(policy)):
        wanted = getattr(policy, setting) * limit // USUAL_LIMIT
        try:
            policy = get_policy(name, **_told(policy, name) | {setting: wanted})
        except InvalidSettingError:
            continue  # another setting or a bound forbids it
    return policy


def _in_tokens(policy: Policy) -> Iterator[tuple[str, int]]:
    for setting in list_settings(policy):
        value = getattr(policy, setting.name)
        if setting.unit == "tokens" and type(value) is int:
            yield setting.name, value


def _told(policy: Policy, name: str) -> dict[str, int]:
    before = dict(_in_tokens(get_policy(name)))
    return {key: value for key, value in _in_tokens(policy) if value != before[key]}
