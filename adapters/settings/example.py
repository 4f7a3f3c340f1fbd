"""A settings file that says all there is to say, and changes nothing."""

import json
from collections.abc import Iterator
from typing import Any

from ...domain.policies.catalog import DEFAULT, POLICIES
from ...domain.policies.policy import NONE, settings_of
from .context_settings import ContextSettings
from .listing import plain
from .section import Section, Shape, told
from .settings import HookCommandSettings, ModelSettings, Settings

HEAD = """\
# Settings of cutbank. What stands here is what holds without this file.
# Lines that begin with `#` and no space are examples: take the `#` away."""
WIDTH = 100
MODEL = {"context": 200_000, "output": 64_000, "input_usd": 3, "cache_read_usd": 0.3}
MODEL |= {"cache_write_usd": 3.75, "output_usd": 15}
CONTEXT = {"enabled": True, "compaction_threshold": 0.8, "protected_turns": 2}
CONTEXT |= {"cooldown_seconds": 60, "max_tool_response_tokens": 25_000}
HOOK = {"on": ["pre_compact"], "command": ["my-hook", "--strict"], "time_limit": 10}


def example() -> str:
    """The text of the file."""
    return "\n".join([HEAD, *_sections()]) + "\n"


def _sections() -> Iterator[str]:
    for name in Settings.model_fields:
        about = told(Settings, name)
        if about.section is not None and not about.is_by_name and about.default is not None:
            yield from _section(name, about.section)
    yield from _table("[compaction.settings]", f"The settings of {DEFAULT}.")
    for one in settings_of(POLICIES[DEFAULT]):
        yield from _pair(one.name, one.default, one.takes, one.help, is_example=True)
    yield from _examples("[context]", ContextSettings, CONTEXT)
    yield from _examples('[models."NAME"]', ModelSettings, MODEL)
    yield from _examples("[[hooks.commands]]", HookCommandSettings, HOOK)


def _section(name: str, section: type[Section]) -> Iterator[str]:
    scalars = [
        (field, about)
        for field in section.model_fields
        if (about := told(section, field)).shape in {Shape.SCALAR, Shape.LIST}
    ]
    if scalars:
        yield from _table(f"[{name}]", section.__doc__ or "")
    for field, about in scalars:
        yield from _pair(field, plain(about.default), about.takes, about.scalar.help)


def _examples(header: str, section: type[Section], values: dict[str, Any]) -> Iterator[str]:
    yield from _table(f"#{header}", section.__doc__ or "")
    for field, value in values.items():
        about = told(section, field)
        yield from _pair(field, value, about.takes, about.scalar.help, is_example=True)


def _table(header: str, about: str) -> Iterator[str]:
    yield ""
    yield f"# {about}"
    yield header


def _pair(
    name: str, value: Any, takes: str, help_: str, *, is_example: bool = False
) -> Iterator[str]:
    in_one = f"# {help_} ({takes})"
    yield from [in_one] if len(in_one) <= WIDTH else [f"# {help_}", f"# ({takes})"]
    yield f"{'#' if is_example else ''}{name} = {json.dumps(NONE if value is None else value)}"
