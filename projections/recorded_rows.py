"""Turns recorded sessions into plain texts, the agent-independent input of fidelity."""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from ..domain.blocks import UNSENT_KINDS, Block, BlockKind, ToolCall
from ..domain.fidelity.rows import AGENT_KINDS, FidelityRow, RowKind, SessionRows
from ..domain.ranges import Ranges
from ..domain.session_events import (
    BlockAppended,
    BlocksRetracted,
    SessionOpened,
    SystemPromptSet,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
)
from .recording import Recording

_SUMMARY_KIND = "summary"
"""The name of developer blocks that hold a summary from a transcript."""


def make_session_rows(recording: Recording) -> SessionRows:
    """Return the unretracted texts in order, with the calls that wrote or first saw them.

    There are no rows for notes, artifacts and summaries.
    """
    writers = {at: call.number for call in recording.calls for at in call.answer}
    # A call that is recorded late may have seen less than the one before it.
    seen = list(accumulate((call.last_seen_position for call in recording.calls), max))
    retracted = Ranges(
        run
        for recorded in recording.log.values()
        if isinstance(recorded.event, BlocksRetracted)
        for run in recorded.event.positions.runs
    )
    rows: list[FidelityRow] = []
    tools: dict[int, str] = {}
    for recorded in recording.log.values():
        position = recorded.position
        if position in retracted:
            continue
        seen_by = bisect_left(seen, position) + 1  # one more than all calls if none saw it
        match recorded.event:
            case SystemPromptSet(text=text):
                rows.append(FidelityRow(position, RowKind.SYSTEM, text, seen_by))
            case BlockAppended(block=block) if kind := _find_row_kind(block):
                by = writers[position] if kind in AGENT_KINDS else seen_by
                rows.append(FidelityRow(position, kind, block.text, by))
            case ToolCalled(block=block):
                tools[position] = block.name
                rows.append(_make_call_row(position, block, writers[position]))
            case ToolReturned() | ToolCallAbandoned() as result:
                tool = tools.get(result.call)
                rows.append(_make_result_row(position, result, tool, seen_by))
            case _:
                pass
    roots = tuple(sorted(_find_roots(recording)))
    return SessionRows(recording.key, rows, len(recording.calls), roots)


_ROW_KINDS = {
    BlockKind.USER: RowKind.USER,
    BlockKind.ASSISTANT: RowKind.ASSISTANT,
    BlockKind.THINKING: RowKind.THINKING,
    BlockKind.DEVELOPER: RowKind.ATTACHMENT,
    BlockKind.IMAGE: RowKind.ATTACHMENT,
    BlockKind.DOCUMENT: RowKind.ATTACHMENT,
}


def _find_row_kind(block: Block) -> RowKind | None:
    if block.kind is BlockKind.DEVELOPER and block.name == _SUMMARY_KIND:
        return None
    return _ROW_KINDS.get(block.kind)


def _make_call_row(position: int, block: ToolCall, call: int) -> FidelityRow:
    arguments = block.parse_arguments()
    return FidelityRow(
        position,
        RowKind.TOOL_CALL,
        "\n".join((block.name, *_iter_values(arguments))),
        call,
        tool=block.name,
        arguments=arguments,
        call_id=block.tool_call_id,
    )


def _make_result_row(
    position: int, result: ToolReturned | ToolCallAbandoned, tool: str | None, call: int
) -> FidelityRow:
    if isinstance(result, ToolReturned):
        block = result.block
        text, call_id, is_error = block.text, block.tool_call_id, block.is_error
    else:
        text, call_id, is_error = f"[abandoned: {result.reason}]", result.tool_call_id, True
    return FidelityRow(
        position, RowKind.TOOL_RESULT, text, call, tool=tool, call_id=call_id, is_error=is_error
    )


def _iter_values(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a JSON document, without JSON escapes."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _iter_values(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _iter_values(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


# Working directories

_ROOT = re.compile(
    r'"(?:cwd|work_?dir|working_?dir(?:ectory)?|workspace(?:_?root|_?dir|_?path)?)"'
    r'\s*:\s*("/(?:[^"\\]|\\.)*")',
    re.IGNORECASE,
)


def _find_roots(recording: Recording) -> set[str]:
    texts = {
        text
        for recorded in recording.log.values()
        if isinstance(recorded.event, BlockAppended | ToolCalled | ToolReturned)
        for text in _iter_source_texts(recorded.event.block)
        if "cwd" in text or "work" in text
    }
    projects = {
        recorded.event.project
        for recorded in recording.log.values()
        if isinstance(recorded.event, SessionOpened) and recorded.event.project
    }
    return projects | {
        root
        for text in texts
        for found in _ROOT.finditer(text)
        if (root := _unescape(found[1]).rstrip("/"))
    }


def _iter_source_texts(block: Any) -> Iterator[str]:
    """Yield the rest of a source's entry, and the text of unsent blocks."""
    if block.origin is not None and block.origin.entry is not None:
        yield block.origin.entry
    if block.kind in UNSENT_KINDS:
        yield block.text


def _unescape(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return ""  # an invalid string names no directory
