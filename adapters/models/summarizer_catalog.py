"""Makes summarizers by name: the built-in ones, and those of installed packages."""

from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ...domain.errors import InvalidSettingError
from ...domain.summaries.extractive import ExtractiveSummarizer
from ...domain.summaries.summarizer import ListingSummarizer, Summarizer
from ..settings.compaction_settings import ENTRY_POINT_GROUP
from .command_summarizer import CommandSummarizer
from .llm_summarizer import LlmSummarizer

_BUILT_IN: dict[str, type[Any]] = {
    "extractive": ExtractiveSummarizer,
    "listing": ListingSummarizer,
    "llm": LlmSummarizer,
    "command": CommandSummarizer,
}
"""Dataclasses, whose fields are the options."""
_REQUIRED_OPTIONS = {"llm": "model", "command": "argv"}


def get_summarizer(name: str, **options: Any) -> Summarizer:
    """Return the summarizer of that name.

    Raises InvalidSettingError with the known names or options.
    """
    if name in _BUILT_IN:
        _check_options(name, options)
        made: Summarizer = _BUILT_IN[name](**options)
        return made
    found = _list_installed().get(name)
    if found is None:
        known = ", ".join(list_summarizer_names())
        raise InvalidSettingError(f"there is no summarizer {name!r}; there are {known}")
    return _make_external(found, options)


def list_summarizer_names() -> list[str]:
    return [*_BUILT_IN, *(name for name in _list_installed() if name not in _BUILT_IN)]


def _list_installed() -> dict[str, EntryPoint]:
    return {found.name: found for found in entry_points(group=ENTRY_POINT_GROUP)}


def _make_external(found: EntryPoint, options: Mapping[str, Any]) -> Summarizer:
    """Return the result of a package's class or factory."""
    of = f"summarizer {found.name!r} ({found.value})"
    try:
        summarizer = found.load()(**options)
    except InvalidSettingError:
        raise
    except Exception as error:  # a package may raise anything when it is imported or called
        raise InvalidSettingError(
            f"{of} cannot be made: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(getattr(summarizer, "name", None), str) or not callable(
        getattr(summarizer, "summarize", None)
    ):
        raise InvalidSettingError(f"{of} is not a summarizer: it needs a `name` and `summarize`")
    made: Summarizer = summarizer
    return made


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    known = [one.name for one in fields(_BUILT_IN[name]) if one.init and one.name != "name"]
    for option in options:
        if option not in known:
            has = ", ".join(known) or "none"
            raise InvalidSettingError(f"{name} has no option {option!r}; it has {has}")
    needed = _REQUIRED_OPTIONS.get(name)
    if needed and options.get(needed) is None:
        raise InvalidSettingError(f"{name}: {needed} is missing")
