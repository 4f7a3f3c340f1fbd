"""Implements `settings` and `policies`: what can be set, what is in effect, and from where."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ....domain.policies.catalog import DEFAULT_POLICY, POLICIES, find_alias
from ....domain.policies.policy import Policy, get_presets
from ....domain.policies.scored_pruning import ScoredPruning
from ....domain.settings import NO_VALUE, Section, SettingInfo, list_settings
from ...settings.compaction_settings import ContextSettings
from ...settings.load_settings import find_settings_file, load_settings
from ...settings.policy_catalog import find_package, list_policies, list_unusable
from ...settings.section import SettingOrigin, SettingPath, format_path, hide_keys
from ...settings.settings import HookCommandSettings, ModelSettings, Settings
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
FILE_HEAD = """\
# Settings of cutbank. The values here are the defaults, which also apply without this file.
# Lines that begin with `#` and no space are examples: take the `#` away."""
_LINE_CHARACTERS = 100
MODEL_EXAMPLE = {"context": 200_000, "output": 64_000, "input_usd": 3, "cache_read_usd": 0.3}
MODEL_EXAMPLE |= {"cache_write_usd": 3.75, "output_usd": 15}
CONTEXT_EXAMPLE = {"enabled": True, "compaction_threshold": 0.8, "protected_turns": 2}
CONTEXT_EXAMPLE |= {"cooldown_seconds": 60, "max_tool_response_tokens": 25_000}
HOOK_EXAMPLE = {"on": ["pre_compact"], "command": ["my-hook", "--strict"], "time_limit": 10}


@dataclass(frozen=True, slots=True)
class ListedSetting:
    """A setting with its value in effect."""

    path: SettingPath
    value: Any
    origin: SettingOrigin
    about: SettingInfo

    @property
    def name(self) -> str:
        return format_path(self.path)

    @property
    def default(self) -> Any:
        return None if self.about.default is MISSING else to_json_value(self.about.default)


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


def list_effective_settings(settings: Settings) -> Iterator[ListedSetting]:
    """Return all settings in the order of their declaration."""
    return _list_section(settings, settings, ())


def _list_section(
    settings: Settings, section: Section, above: SettingPath
) -> Iterator[ListedSetting]:
    for about in list_settings(Settings if section is settings else section):
        value = getattr(section, about.name)
        path = (*above, about.name)
        if path == ("compaction", "settings"):
            policy = settings.policy
            for one in list_settings(policy):
                value = getattr(policy, one.name)
                yield ListedSetting((*path, one.name), value, _find_origin(settings, one), one)
        elif path == ("compaction", "policy") and value != settings.policy_name:
            given = sorted(settings.context.model_fields_set) if settings.context else ()
            origins = [settings.find_origin("context", one) for one in given]
            yield ListedSetting(path, settings.policy_name, (*origins, SettingOrigin())[0], about)
        elif isinstance(value, Section):
            yield from _list_section(settings, value, path)
        elif about.section and value:
            for key, one in value.items() if about.is_by_name else enumerate(value):
                yield from _list_section(settings, one, (*path, key))
        else:
            yield ListedSetting(path, to_json_value(value), settings.find_origin(*path), about)


def _find_origin(settings: Settings, of_policy: SettingInfo) -> SettingOrigin:
    """Return the origin of a policy's setting, which [context] may have as well."""
    origin = settings.find_origin("compaction", "settings", of_policy.name)
    if origin == SettingOrigin() and isinstance(settings.policy, ScoredPruning):
        return settings.find_origin("context", of_policy.name)
    return origin


def to_json_value(value: Any) -> Any:
    match value:
        case tuple():
            return [to_json_value(one) for one in value]
        case Mapping():
            return {key: to_json_value(one) for key, one in value.items()}
        case str():  # including enumerations
            return str(value)
        case float() if value.is_integer():
            return int(value)  # 120 instead of 120.0
        case _:
            return value


def make_example() -> str:
    return "\n".join([FILE_HEAD, *_format_sections()]) + "\n"


def _format_sections() -> Iterator[str]:
    for about in list_settings(Settings):
        if about.section is None or about.is_by_name or about.default is None:
            continue
        defaults = {
            one.name: to_json_value(one.default)
            for one in list_settings(about.section)
            if not (one.section or one.is_by_name)
        }
        if defaults:
            yield from _format_section(f"[{about.name}]", about.section, defaults)
    yield from ("", f"# The settings of {DEFAULT_POLICY}.", "[compaction.settings]")
    for one in list_settings(POLICIES[DEFAULT_POLICY]):
        yield from _format_setting("#", one, one.default)
    yield from _format_section("#[context]", ContextSettings, CONTEXT_EXAMPLE)
    yield from _format_section('#[models."NAME"]', ModelSettings, MODEL_EXAMPLE)
    yield from _format_section("#[[hooks.commands]]", HookCommandSettings, HOOK_EXAMPLE)


def _format_section(header: str, section: type[Section], values: dict[str, Any]) -> Iterator[str]:
    """Yield a section with these values; as an example if the header is one."""
    yield from ("", f"# {section.__doc__}", header)
    for one in list_settings(section):
        if one.name in values:
            yield from _format_setting("#" * header.startswith("#"), one, values[one.name])


def _format_setting(mark: str, about: SettingInfo, value: Any) -> Iterator[str]:
    takes = f"({about.accepted_values})"
    in_one = f"# {about.help} {takes}"
    yield from [in_one] if len(in_one) <= _LINE_CHARACTERS else [f"# {about.help}", f"# {takes}"]
    yield f"{mark}{about.name} = {json.dumps(NO_VALUE if value is None else value)}"
