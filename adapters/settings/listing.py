"""Lists every setting in effect, and makes an example file of all with their defaults."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...domain.policies.catalog import DEFAULT_POLICY, POLICIES
from ...domain.policies.policy import NO_VALUE, list_settings
from ...domain.policies.scored_pruning import ScoredPruning
from .compaction_settings import ContextSettings
from .mistakes import format_path
from .section import (
    UNSET,
    Section,
    SettingInfo,
    SettingOrigin,
    SettingPath,
    describe_setting,
)
from .settings import HookCommandSettings, ModelSettings, Settings

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
    path: SettingPath
    value: Any
    default: Any
    unit: str
    accepted_values: str
    help: str
    origin: SettingOrigin

    @property
    def name(self) -> str:
        return format_path(self.path)


def list_effective_settings(settings: Settings) -> Iterator[ListedSetting]:
    """Return all settings in the order of their declaration."""
    return _list_section(settings, settings, ())


def _list_section(
    settings: Settings, section: Section, above: SettingPath
) -> Iterator[ListedSetting]:
    for name in type(section).model_fields:
        about = describe_setting(type(section), name)
        value = getattr(section, name)
        path = (*above, name)
        if path == ("compaction", "settings"):
            yield from _list_policy_settings(settings, path)
        elif path == ("compaction", "policy") and value != settings.policy_name:
            given = sorted(settings.context.model_fields_set) if settings.context else ()
            origin = next((settings.find_origin("context", one) for one in given), UNSET)
            about_policy = _make_listed(settings, path, about, settings.policy_name)
            yield replace(about_policy, origin=origin)
        elif isinstance(value, Section):
            yield from _list_section(settings, value, path)
        elif about.section and value:
            for key, one in value.items() if about.is_by_name else enumerate(value):
                yield from _list_section(settings, one, (*path, key))
        else:
            yield _make_listed(settings, path, about, value)


def _make_listed(
    settings: Settings, path: SettingPath, about: SettingInfo, value: Any
) -> ListedSetting:
    return ListedSetting(
        path=path,
        value=to_json_value(value),
        default=to_json_value(about.scalar.default),
        unit=about.scalar.unit,
        accepted_values=about.accepted_values,
        help=about.scalar.help,
        origin=settings.find_origin(*path),
    )


def _list_policy_settings(settings: Settings, above: SettingPath) -> Iterator[ListedSetting]:
    policy = settings.policy
    for one in list_settings(policy):
        path = (*above, one.name)
        origin = settings.find_origin(*path)
        if origin == UNSET and isinstance(policy, ScoredPruning):
            origin = settings.find_origin("context", one.name)
        yield ListedSetting(
            path=path,
            value=getattr(policy, one.name),
            default=one.default if isinstance(one.default, int | float | str) else None,
            unit=one.unit,
            accepted_values=one.accepted_values,
            help=one.help,
            origin=origin,
        )


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
    for name in Settings.model_fields:
        about = describe_setting(Settings, name)
        if about.section is None or about.is_by_name or about.scalar.default is None:
            continue
        fields = [describe_setting(about.section, field) for field in about.section.model_fields]
        defaults = {
            one.scalar.name: to_json_value(one.scalar.default) for one in fields if not one.is_table
        }
        if defaults:
            yield from _format_section(f"[{name}]", about.section, defaults)
    yield from ("", f"# The settings of {DEFAULT_POLICY}.", "[compaction.settings]")
    for one in list_settings(POLICIES[DEFAULT_POLICY]):
        yield from _format_setting(f"#{one.name}", one.default, one.accepted_values, one.help)
    yield from _format_section("#[context]", ContextSettings, CONTEXT_EXAMPLE)
    yield from _format_section('#[models."NAME"]', ModelSettings, MODEL_EXAMPLE)
    yield from _format_section("#[[hooks.commands]]", HookCommandSettings, HOOK_EXAMPLE)


def _format_section(header: str, section: type[Section], values: dict[str, Any]) -> Iterator[str]:
    """Yield a section with these values; as an example if the header is one."""
    yield from ("", f"# {section.__doc__}", header)
    mark = "#" if header.startswith("#") else ""
    for field, value in values.items():
        about = describe_setting(section, field)
        yield from _format_setting(
            f"{mark}{field}", value, about.accepted_values, about.scalar.help
        )


def _format_setting(name: str, value: Any, takes: str, help_: str) -> Iterator[str]:
    in_one = f"# {help_} ({takes})"
    yield from [in_one] if len(in_one) <= _LINE_CHARACTERS else [f"# {help_}", f"# ({takes})"]
    yield f"{name} = {json.dumps(NO_VALUE if value is None else value)}"
