"""What klaude-code takes a tool call to do to files: by the tool's name, or by its arguments."""

from collections.abc import Mapping

from pydantic import JsonValue

from ...blocks import ToolCall
from ...digest import Touch, arguments_of

PATHS = ("file_path", "path")
READS = frozenset({"read"})
WRITES = frozenset({"write", "edit", "apply_patch"})
PATCH = "*** Begin Patch"


def by_name(call: ToolCall) -> Touch:
    """As first shipped: four tools are known, and others touch nothing."""
    if call.name not in READS | WRITES:
        return Touch()
    return Touch(_path(arguments_of(call)), modifies=call.name in WRITES)


def by_arguments(call: ToolCall) -> Touch:
    """As shipped later: whatever names a path reads it, or changes it by what else it is given."""
    given = arguments_of(call)
    return Touch(_path(given), modifies=_changes(given))


def _path(given: Mapping[str, JsonValue]) -> tuple[str, ...]:
    named = (given.get(key) for key in PATHS)
    return tuple(path for path in named if isinstance(path, str) and path.strip())[:1]


def _changes(given: Mapping[str, JsonValue]) -> bool:
    if {"old", "new"} <= given.keys() or "content" in given:
        return True
    patch = given.get("patch")
    return (isinstance(patch, str) and PATCH in patch) or isinstance(given.get("edits"), list)
