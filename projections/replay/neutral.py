"""A recorded session as rows of what was said: what fidelity reads, whatever agent wrote it."""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from ...domain.blocks import NOT_SENT, Block, Kind, ToolCall
from ...domain.fidelity.rows import Row, Rows, Said
from ...domain.ranges import Ranges
from ...domain.session_events import (
    BlockAppended,
    BlocksRetracted,
    SystemPromptSet,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
)
from .recording import Recording

SUMMARY = "summary"
"""The name of developers' blocks that say a summary which came with the transcript."""


def rows_of(recording: Recording) -> Rows:
    """What was said and never taken back, in order, with the calls that wrote and first saw it.

    Notes and artifacts, which no model was sent, are no rows, nor are summaries.
    """
    calls = _Calls(recording)
    taken_back = _taken_back(recording)
    rows: list[Row] = []
    tools: dict[int, str] = {}
    for recorded in recording.log:
        position = recorded.position
        if position in taken_back:
            continue
        match recorded.event:
            case SystemPromptSet(text=text):
                rows.append(Row(position, Said.SYSTEM, text, calls.that_sees(position)))
            case BlockAppended(block=block) if said := _said(block):
                rows.append(Row(position, said, block.text, calls.of(position, said)))
            case ToolCalled(block=block):
                tools[position] = block.name
                rows.append(_called(position, block, calls.of(position, Said.TOOL_CALL)))
            case ToolReturned(block=block, call=call):
                rows.append(
                    Row(
                        position,
                        Said.TOOL_RESULT,
                        block.text,
                        calls.that_sees(position),
                        tool=tools.get(call),
                        call_id=block.tool_call_id,
                        is_error=block.is_error,
                    )
                )
            case ToolCallAbandoned(tool_call_id=name, reason=reason, call=call):
                rows.append(
                    Row(
                        position,
                        Said.TOOL_RESULT,
                        f"[abandoned: {reason}]",
                        calls.that_sees(position),
                        tool=tools.get(call),
                        call_id=name,
                        is_error=True,
                    )
                )
            case _:
                pass
    return Rows(recording.key, rows, len(recording.calls), tuple(sorted(_roots(recording))))


_SAID = {
    Kind.USER: Said.USER,
    Kind.ASSISTANT: Said.ASSISTANT,
    Kind.THINKING: Said.THINKING,
    Kind.DEVELOPER: Said.ATTACHMENT,
    Kind.IMAGE: Said.ATTACHMENT,
    Kind.DOCUMENT: Said.ATTACHMENT,
}


def _said(block: Block) -> Said | None:
    if block.kind is Kind.DEVELOPER and block.name == SUMMARY:
        return None
    return _SAID.get(block.kind)


def _called(position: int, block: ToolCall, call: int) -> Row:
    arguments = block.parsed()
    return Row(
        position,
        Said.TOOL_CALL,
        "\n".join((block.name, *values_of(arguments))),
        call,
        tool=block.name,
        arguments=arguments,
        call_id=block.tool_call_id,
    )


def values_of(value: Any) -> Iterator[str]:
    """The texts and numbers in a document, as they are meant and not as JSON spells them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from values_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from values_of(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


class _Calls:
    """Which call of the model wrote a block, or could see it first."""

    def __init__(self, recording: Recording) -> None:
        calls = recording.calls
        self._wrote = {position: call.number for call in calls for position in call.answer}
        # A call that is told late may have seen less than the one before it.
        self._seen = list(accumulate((call.sees for call in calls), max))

    def that_sees(self, position: int) -> int:
        """One more than there are calls where none saw it."""
        return bisect_left(self._seen, position) + 1

    def of(self, position: int, said: Said) -> int:
        if said in {Said.ASSISTANT, Said.THINKING, Said.TOOL_CALL}:
            return self._wrote[position]
        return self.that_sees(position)


def _taken_back(recording: Recording) -> Ranges:
    return Ranges(
        run
        for recorded in recording.log
        if isinstance(recorded.event, BlocksRetracted)
        for run in recorded.event.positions.runs
    )


# Working directories

_ROOT = re.compile(
    r'"(?:cwd|work_?dir|working_?dir(?:ectory)?|workspace(?:_?root|_?dir|_?path)?)"'
    r'\s*:\s*("/(?:[^"\\]|\\.)*")',
    re.IGNORECASE,
)


def _roots(recording: Recording) -> set[str]:
    """What the source names as working directories, in entries and in notes of them."""
    texts = {
        text
        for recorded in recording.log
        if isinstance(recorded.event, BlockAppended | ToolCalled | ToolReturned)
        for text in _told(recorded.event.block)
        if "cwd" in text or "work" in text
    }
    return {
        root
        for text in texts
        for found in _ROOT.finditer(text)
        if (root := _unescaped(found[1]).rstrip("/"))
    }


def _told(block: Any) -> Iterator[str]:
    """What a source's entry tells beside what was said."""
    if block.origin is not None and block.origin.entry is not None:
        yield block.origin.entry
    if block.kind in NOT_SENT:
        yield block.text


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return ""  # what a source misspells names no directory
