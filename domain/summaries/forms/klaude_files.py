"""What klaude-code takes a tool call to do to files: by the tool's name, or by its arguments."""

from collections.abc import Mapping

from pydantic import JsonValue

from ...blocks import ToolCall
from ...digest import TouchedPaths, read_arguments

_PATH_ARGUMENTS = ("file_path", "path")
_READ_TOOLS = frozenset({"read"})
_WRITE_TOOLS = frozenset({"write", "edit", "apply_patch"})
_PATCH_MARK = "*** Begin Patch"


def find_touches_by_name(call: ToolCall) -> TouchedPaths:
    """As first shipped: four tools are known, and others touch nothing."""
    if call.name not in _READ_TOOLS | _WRITE_TOOLS:
        return TouchedPaths()
    return TouchedPaths(_find_path(read_arguments(call)), modifies=call.name in _WRITE_TOOLS)


def find_touches_by_arguments(call: ToolCall) -> TouchedPaths:
    """As shipped later: whatever names a path reads it, or changes it by what else it is given."""
    given = read_arguments(call)
    return TouchedPaths(_find_path(given), modifies=_has_changes(given))


def _find_path(given: Mapping[str, JsonValue]) -> tuple[str, ...]:
    named = (given.get(key) for key in _PATH_ARGUMENTS)
    return tuple(path for path in named if isinstance(path, str) and path.strip())[:1]


def _has_changes(given: Mapping[str, JsonValue]) -> bool:
    if {"old", "new"} <= given.keys() or "content" in given:
        return True
    patch = given.get("patch")
    return (isinstance(patch, str) and _PATCH_MARK in patch) or isinstance(given.get("edits"), list)
