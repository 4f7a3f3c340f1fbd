"""Finds which files calls read and modified."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..blocks import ToolCall
from ..digest import SHELL_TOOLS, find_touched_files, normalize_tool_name, parse_names
from .anchors import AnchorKind
from .rows import FidelityRow, RowKind, SessionRows
from .words import WordReader

_VIEW_COMMANDS = parse_names("bat cat head less more nl sed tail")
"""Commands that agents use to read files if they have no tool for it."""
_PARTS = re.compile(r"&&|\|\||[;|\n]")


class FileTouch(NamedTuple):
    """A successful call that read or modified a file."""

    call: int
    position: int
    key: str
    """The file's path as a fact's key: without a session's roots."""
    modifies: bool


def find_file_touches(rows: SessionRows, words: WordReader) -> tuple[FileTouch, ...]:
    """Return file touches by position, without paths that are not facts, such as `Makefile`."""
    failed = _find_failed_calls(rows.rows)
    return tuple(
        FileTouch(row.call, row.position, key, modifies)
        for index, row in enumerate(rows.rows)
        if row.kind is RowKind.TOOL_CALL and index not in failed
        for key, modifies in dict.fromkeys(
            (*_iter_argument_files(row, words), *_iter_shell_files(row, words))
        )
    )


def _iter_argument_files(row: FidelityRow, words: WordReader) -> Iterator[tuple[str, bool]]:
    """Yield the files that arguments name, by the rule of the digest."""
    if row.tool is None or not row.arguments:
        return
    call = ToolCall(tool_call_id=row.call_id or "-", name=row.tool, arguments=row.arguments)
    touch = find_touched_files(call)
    for path in touch.paths:
        # White space splits a path into several facts; the last one names the file.
        for key in _find_paths(path, words)[-1:]:
            yield key, touch.modifies


def _iter_shell_files(row: FidelityRow, words: WordReader) -> Iterator[tuple[str, bool]]:
    if row.tool is None or normalize_tool_name(row.tool) not in SHELL_TOOLS:
        return
    for part in _PARTS.split(row.text.partition("\n")[2]):
        command, _, target = part.partition(">")
        said = command.split()
        if said and said[0] in _VIEW_COMMANDS:
            is_edit = said[0] == "sed" and any(word.startswith(("-i", "--in-p")) for word in said)
            yield from ((key, is_edit) for key in _find_files(command, words))
            yield from ((key, True) for key in _find_files(target, words)[:1])


def _find_files(text: str, words: WordReader) -> list[str]:
    """Return the paths in a text that have an extension; others may be folders or patterns."""
    return [key for key in _find_paths(text, words) if "." in key.rpartition("/")[2]]


def _find_paths(text: str, words: WordReader) -> list[str]:
    return [fact.key for fact in words.find_anchors(text) if fact.kind is AnchorKind.PATH]


def _find_failed_calls(rows: Sequence[FidelityRow]) -> frozenset[int]:
    asked: dict[str, int] = {}
    failed: set[int] = set()
    for index, row in enumerate(rows):
        if row.call_id is None:
            continue
        if row.kind is RowKind.TOOL_CALL:
            asked[row.call_id] = index
        elif row.kind is RowKind.TOOL_RESULT and row.is_error and row.call_id in asked:
            failed.add(asked[row.call_id])
    return frozenset(failed)
