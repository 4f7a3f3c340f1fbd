"""Makes an example settings file that lists all settings with their defaults."""

import json
from collections.abc import Iterator
from typing import Any

from ...domain.policies.catalog import DEFAULT_POLICY, POLICIES
from ...domain.policies.policy import NO_VALUE, list_settings
from .context_settings import ContextSettings
from .listing import to_json_value
from .section import Section, SettingShape, describe_setting
from .settings import HookCommandSettings, ModelSettings, Settings

FILE_HEAD = """\
# Settings of cutbank. What stands here is what holds without this file.
# Lines that begin with `#` and no space are examples: take the `#` away."""
_LINE_CHARACTERS = 100
MODEL_EXAMPLE = {"context": 200_000, "output": 64_000, "input_usd": 3, "cache_read_usd": 0.3}
MODEL_EXAMPLE |= {"cache_write_usd": 3.75, "output_usd": 15}
CONTEXT_EXAMPLE = {"enabled": True, "compaction_threshold": 0.8, "protected_turns": 2}
CONTEXT_EXAMPLE |= {"cooldown_seconds": 60, "max_tool_response_tokens": 25_000}
HOOK_EXAMPLE = {"on": ["pre_compact"], "command": ["my-hook", "--strict"], "time_limit": 10}


def make_example() -> str:
    return "\n".join([FILE_HEAD, *_format_sections()]) + "\n"


def _format_sections() -> Iterator[str]:
    for name in Settings.model_fields:
        about = describe_setting(Settings, name)
        if about.section is not None and not about.is_by_name and about.default is not None:
            yield from _format_section(name, about.section)
    yield from _format_table("[compaction.settings]", f"The settings of {DEFAULT_POLICY}.")
    for one in list_settings(POLICIES[DEFAULT_POLICY]):
        yield from _format_pair(
            one.name, one.default, one.accepted_values, one.help, is_example=True
        )
    yield from _format_examples("[context]", ContextSettings, CONTEXT_EXAMPLE)
    yield from _format_examples('[models."NAME"]', ModelSettings, MODEL_EXAMPLE)
    yield from _format_examples("[[hooks.commands]]", HookCommandSettings, HOOK_EXAMPLE)


def _format_section(name: str, section: type[Section]) -> Iterator[str]:
    scalars = [
        (field, about)
        for field in section.model_fields
        if (about := describe_setting(section, field)).shape
        in {SettingShape.SCALAR, SettingShape.LIST}
    ]
    if scalars:
        yield from _format_table(f"[{name}]", section.__doc__ or "")
    for field, about in scalars:
        yield from _format_pair(
            field, to_json_value(about.default), about.accepted_values, about.scalar.help
        )


def _format_examples(header: str, section: type[Section], values: dict[str, Any]) -> Iterator[str]:
    yield from _format_table(f"#{header}", section.__doc__ or "")
    for field, value in values.items():
        about = describe_setting(section, field)
        yield from _format_pair(
            field, value, about.accepted_values, about.scalar.help, is_example=True
        )


def _format_table(header: str, about: str) -> Iterator[str]:
    yield ""
    yield f"# {about}"
    yield header


def _format_pair(
    name: str, value: Any, takes: str, help_: str, *, is_example: bool = False
) -> Iterator[str]:
    in_one = f"# {help_} ({takes})"
    yield from [in_one] if len(in_one) <= _LINE_CHARACTERS else [f"# {help_}", f"# ({takes})"]
    yield f"{'#' if is_example else ''}{name} = {json.dumps(NO_VALUE if value is None else value)}"
