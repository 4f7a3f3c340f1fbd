"""Lists every setting in effect, and makes an example file of all with their defaults."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import Any

from ...domain.policies.catalog import DEFAULT_POLICY, POLICIES
from ...domain.policies.scored_pruning import ScoredPruning
from ...domain.settings import NO_VALUE, Section, SettingInfo, list_settings
from .compaction_settings import ContextSettings
from .section import SettingOrigin, SettingPath, format_path
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
