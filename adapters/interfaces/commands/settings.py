"""Implements `settings` and `policies`: what can be set, what is in effect, and from where."""

import json
import os
import sys
from dataclasses import MISSING
from functools import partial
from pathlib import Path
from typing import Any

from ....domain.policies.catalog import DEFAULT_POLICY, find_alias
from ....domain.policies.policy import Policy, get_presets
from ....domain.settings import NO_VALUE, SettingInfo, list_settings
from ...settings.listing import ListedSetting, list_effective_settings, make_example
from ...settings.load_settings import find_settings_file, load_settings
from ...settings.policy_catalog import find_package, list_policies, list_unusable
from ...settings.section import hide_keys
from ..command_line.printing import (
    INDENT,
    clip_text,
    pick,
    print_error,
    print_text,
)
from ..command_line.verbs import Answer, Invocation, flag

MAX_VALUE_CHARACTERS = 60
"""Characters shown of a value; `--json` has all of it."""


def settings(
    call: Invocation,
    path: bool = flag("--path", "Only say where the file is."),
    example: bool = flag("--example", "Print a file with every setting and its default."),
) -> Answer:
    if example:
        text = make_example()
        return Answer({"example": text}, text.rstrip("\n"))
    place, _ = find_settings_file(call.settings_file, os.environ)
    document = {"file": str(place), "exists": place.exists()}
    if path:
        return Answer(document, str(place))
    rows = list(list_effective_settings(load_settings(call.settings_file)))
    heading = f"{place}" + ("" if place.exists() else " (not there; `--example` prints one)")
    return Answer(
        document | {"settings": [_row_to_json(row) for row in rows]},
        heading,
        *(partial(_print_setting, row) for row in rows),
    )


def _row_to_json(row: ListedSetting) -> dict[str, Any]:
    return {
        **pick(row, "name value unit=about.unit takes=about.accepted_values help=about.help"),
        **pick(row, "default"),
        "origin": str(row.origin),
        **pick(row.origin, "file variable"),
    }


def _print_setting(row: ListedSetting) -> None:
    is_set = row.origin.file is not None or row.origin.variable is not None
    # The folder of the file is printed above all settings.
    origin = Path(row.origin.file).name if row.origin.file else str(row.origin)
    print_text(f"\n{row.name} = {_format_listed(row)} ({origin})", bold=is_set)
    print_text(f"{INDENT}{row.about.help}")


def _format_listed(row: ListedSetting) -> str:
    unit = row.about.unit
    if row.value is None:
        return f"{NO_VALUE} ({unit})" if unit else NO_VALUE
    text = row.value if isinstance(row.value, str) else json.dumps(row.value, ensure_ascii=False)
    return clip_text(hide_keys(text) + (f" {unit}" if unit else ""), MAX_VALUE_CHARACTERS)


def policies(_call: Invocation) -> Answer:
    listed = [_policy_to_json(policy) for policy in list_policies().values()]
    for brought in list_unusable():
        print_error(str(brought))
    return Answer(listed, *(partial(_print_policy, one) for one in listed))


def _print_policy(one: dict[str, Any]) -> None:
    also = [*one["aliases"], *(["the default"] if one["default"] else [])]
    print_text(one["name"] + (f" ({', '.join(also)})" if also else ""), bold=True)
    print_text(f"    {one['summary']}")
    if one["source"]:
        print_text(f"    follows {one['source']}")
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
    print_text()


def _policy_to_json(policy: type[Policy]) -> dict[str, Any]:
    # The first sentence of a policy's module describes the policy.
    document = sys.modules[policy.__module__].__doc__ or ""
    return {
        "name": policy.name,
        "aliases": [*filter(None, [find_alias(policy)])],
        "default": policy.name == DEFAULT_POLICY,
        "summary": document.strip().partition("\n")[0],
        "source": getattr(policy, "source", None),
        "package": find_package(policy),
        "presets": [
            {"name": name, "settings": dict(given)} for name, given in get_presets(policy).items()
        ],
        "settings": [_setting_to_json(setting) for setting in list_settings(policy)],
    }


def _setting_to_json(setting: SettingInfo) -> dict[str, Any]:
    required = setting.default is MISSING
    return {
        "name": setting.name,
        "type": setting.value_type.__name__,
        "required": required,
        "default": None if required else setting.default,
        **pick(setting, "unit least most among may_be_none"),
        "takes": setting.accepted_values,
        "help": setting.help,
    }


def _format_value(value: Any) -> str:
    if value is None:
        return NO_VALUE
    return value if isinstance(value, str) else json.dumps(value)
