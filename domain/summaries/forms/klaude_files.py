"""Finds the files that a call touches as klaude-code does: by tool name, or by arguments."""

from collections.abc import Mapping

from pydantic import JsonValue

from ...blocks import ToolCall
from ...digest import TouchedPaths, read_arguments

_PATH_ARGUMENTS = ("file_path", "path")
_READ_TOOLS = frozenset({"read"})
_WRITE_TOOLS = frozenset({"write", "edit", "apply_patch"})
_PATCH_MARK = "*** Begin Patch"


def find_touches_by_name(call: ToolCall) -> TouchedPaths:
    """Return the files of the first version: four tools are known, and others touch nothing."""
    if call.name not in _READ_TOOLS | _WRITE_TOOLS:
        return TouchedPaths()
    return TouchedPaths(_find_path(read_arguments(call)), modifies=call.name in _WRITE_TOOLS)


def find_touches_by_arguments(call: ToolCall) -> TouchedPaths:
    """Return the files of the later version, in which the arguments alone decide."""
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
