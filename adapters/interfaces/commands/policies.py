"""Implements `policies`: lists policies, their origin and their settings."""

import json
import sys
from dataclasses import MISSING
from typing import Any

from ....domain.policies.catalog import DEFAULT_POLICY, find_alias
from ....domain.policies.policy import Policy, PolicySetting, get_presets, list_settings
from ...settings.policy_catalog import find_package, list_unusable
from ...settings.policy_catalog import list_policies as all_policies
from ..command_line.printing import pick, print_error, print_json, print_text
from ..command_line.verbs import Invocation


def policies(call: Invocation) -> None:
    """List the policies with their presets and settings."""
    listed = [_policy_to_json(policy) for policy in all_policies().values()]
    for brought in list_unusable():
        print_error(str(brought))
    if call.as_json:
        print_json(listed)
        return
    for number, one in enumerate(listed):
        if number:
            print_text()
        _print_policy(one)


def _print_policy(one: dict[str, Any]) -> None:
    also = [*one["aliases"], *(["the default"] if one["default"] else [])]
    print_text(one["name"] + (f" ({', '.join(also)})" if also else ""), bold=True)
    print_text(f"    {one['summary']}")
    if one["source"]:
        print_text(f"    from {one['source']}")
    if one["package"]:
        print_text(f"    brought by the package {one['package']}")
    for preset in one["presets"]:
        pairs = (f"{name}={_format_value(value)}" for name, value in preset["settings"].items())
        print_text(f"    @{preset['name']}  {', '.join(pairs) or 'as it is'}")
    for setting in one["settings"]:
        default = f"default {_format_value(setting['default'])}"
        unset = "must be set" if setting["required"] else default
        print_text(f"    --set {setting['name']}=...  {setting['takes']} ({unset})")
        print_text(f"        {setting['help']}")


def _policy_to_json(policy: type[Policy]) -> dict[str, Any]:
    # The first sentence of a policy's module describes the policy.
    document = sys.modules[policy.__module__].__doc__ or ""
    alias = find_alias(policy)
    return {
        "name": policy.name,
        "aliases": [alias] if alias else [],
        "default": policy.name == DEFAULT_POLICY,
        "summary": document.strip().partition("\n")[0],
        "source": getattr(policy, "source", None),
        "package": find_package(policy),
        "presets": [
            {"name": name, "settings": dict(given)} for name, given in get_presets(policy).items()
        ],
        "settings": [_setting_to_json(setting) for setting in list_settings(policy)],
    }


def _setting_to_json(setting: PolicySetting) -> dict[str, Any]:
    required = setting.default is MISSING
    return {
        "name": setting.name,
        "type": setting.type.__name__,
        "required": required,
        "default": None if required else setting.default,
        **pick(setting, "unit least most among may_be_none"),
        "takes": setting.accepted_values,
        "help": setting.help,
    }


def _format_value(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
