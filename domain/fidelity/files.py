"""Which files calls read and modified, by the names that a view would have to have for them."""

from collections.abc import Sequence
from typing import NamedTuple

from ..blocks import ToolCall
from ..digest import touched
from .anchors import AnchorKind
from .rows import Row, Rows, Said
from .words import Words


class FileTouch(NamedTuple):
    """A call that read or modified a file, and did so without an error."""

    call: int
    position: int
    key: str
    """The file's path as facts are told: without a session's roots."""
    modifies: bool


def file_touches(rows: Rows, words: Words) -> tuple[FileTouch, ...]:
    """In the order of their positions. A path that is no fact, as `Makefile`, counts for none."""
    failed = _failed(rows.rows)
    keys: dict[str, str | None] = {}
    touches: list[FileTouch] = []
    for index, row in enumerate(rows.rows):
        if row.said is not Said.TOOL_CALL or row.tool is None or index in failed:
            continue
        call = ToolCall(
            tool_call_id=row.call_id or "-", name=row.tool, arguments=dict(row.arguments or {})
        )
        touch = touched(call)
        for path in touch.paths:
            if path not in keys:
                keys[path] = _key_of(path, words)
            if (key := keys[path]) is not None:
                touches.append(FileTouch(row.call, row.position, key, touch.modifies))
    return tuple(touches)


def _key_of(path: str, words: Words) -> str | None:
    """The last fact that a path spells out: white space in a path parts it into several."""
    paths = [key for key, kind in words.facts(path).items() if kind is AnchorKind.PATH]
    return paths[-1] if paths else None


def _failed(rows: Sequence[Row]) -> frozenset[int]:
    """Indices of the calls whose results are errors."""
    asked: dict[str, int] = {}
    failed: set[int] = set()
    for index, row in enumerate(rows):
        if row.call_id is None:
            continue
        if row.said is Said.TOOL_CALL:
            asked[row.call_id] = index
        elif row.said is Said.TOOL_RESULT and row.is_error and row.call_id in asked:
            failed.add(asked[row.call_id])
    return frozenset(failed)
