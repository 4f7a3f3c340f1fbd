"""The verb about policies: which there are, where they come from, and what can be set."""

import json
import sys
from dataclasses import MISSING
from typing import Any

from ....domain.policies.catalog import DEFAULT, alias_of
from ....domain.policies.policy import Policy, Setting, presets_of, settings_of
from ...settings.policy_catalog import package_of, unusable
from ...settings.policy_catalog import policies as all_policies
from .invocation import Invocation
from .printing import complain, say, say_json


def policies(call: Invocation) -> None:
    """List the policies with their presets and settings."""
    listed = [_policy(policy) for policy in all_policies().values()]
    for brought in unusable():
        complain(str(brought))
    if call.as_json:
        say_json(listed)
        return
    for number, one in enumerate(listed):
        if number:
            say()
        _say_policy(one)


def _say_policy(one: dict[str, Any]) -> None:
    also = [*one["aliases"], *(["the default"] if one["default"] else [])]
    say(one["name"] + (f" ({', '.join(also)})" if also else ""), bold=True)
    say(f"    {one['summary']}")
    if one["source"]:
        say(f"    from {one['source']}")
    if one["package"]:
        say(f"    brought by the package {one['package']}")
    for preset in one["presets"]:
        say(f"    @{preset['name']}  {_given(preset['settings'])}")
    for setting in one["settings"]:
        unset = "must be set" if setting["required"] else f"default {_plain(setting['default'])}"
        say(f"    --set {setting['name']}=...  {setting['takes']} ({unset})")
        say(f"        {setting['help']}")


def _policy(policy: type[Policy]) -> dict[str, Any]:
    # A policy's module opens with the policy in one sentence.
    document = sys.modules[policy.__module__].__doc__ or ""
    alias = alias_of(policy)
    return {
        "name": policy.name,
        "aliases": [alias] if alias else [],
        "default": policy.name == DEFAULT,
        "summary": document.strip().partition("\n")[0],
        "source": getattr(policy, "source", None),
        "package": package_of(policy),
        "presets": [
            {"name": name, "settings": dict(given)} for name, given in presets_of(policy).items()
        ],
        "settings": [_setting(setting) for setting in settings_of(policy)],
    }


def _setting(setting: Setting) -> dict[str, Any]:
    required = setting.default is MISSING
    return {
        "name": setting.name,
        "type": setting.type.__name__,
        "required": required,
        "default": None if required else setting.default,
        "unit": setting.unit,
        "least": setting.least,
        "most": setting.most,
        "among": list(setting.among),
        "may_be_none": setting.may_be_none,
        "takes": setting.takes,
        "help": setting.help,
    }


def _given(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_plain(value)}" for name, value in settings.items()) or "as it is"


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
