"""Truncates tool results that are too large for views, and notifies listeners."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from ....domain.blocks import AnyBlock, Text, ToolResult
from ....domain.compaction import MAIN_LINEAGE
from ....domain.compaction_events import Trim
from ....domain.hooks import CompactionEventKind
from ....domain.ranges import Ranges
from ....domain.session_events import Ends, ToolCalled, ToolReturned
from ....domain.token_estimate import CHARS_PER_TOKEN
from ....domain.trims import MIN_SHOWN_TOKENS, count_byte_tokens, find_ends, trim_text
from ..compaction.event_sink import CompactionEventSink, tool_response_truncated

if TYPE_CHECKING:
    from .session_log import SessionLog

_MAX_BYTES_PER_CHARACTER = 4
"""The most bytes that a character may have."""


def preview_results(blocks: Iterable[AnyBlock], log: "SessionLog") -> list[Ends | None]:
    """Return the previews that views show of appended blocks; None shows a block whole.

    Blocks with more than text stay whole, since half an image is useless. Settings are read only if
    a block may need them, as most appends do not.
    """
    return [_find_ends(block, log) for block in blocks]


def _find_ends(block: AnyBlock, log: "SessionLog") -> Ends | None:
    if not isinstance(block, ToolResult):
        return None
    content, text = block.content, block.text
    if not isinstance(content, str) and not all(isinstance(part, Text) for part in content):
        return None
    if len(text) * _MAX_BYTES_PER_CHARACTER <= MIN_SHOWN_TOKENS * CHARS_PER_TOKEN:
        return None
    context = log.settings.context
    most = context.max_tool_response_tokens if context else None
    return find_ends(text, most) if most is not None else None


def notify_truncated(log: "SessionLog", results: Ranges) -> None:
    store, chain = log.events, log.chain()
    sink = CompactionEventSink(log.listeners, log.key, log.namespace, MAIN_LINEAGE)
    for recorded in store.read(chain, results):
        returned = cast(ToolReturned, recorded.event)
        called = cast(ToolCalled, store.read(chain, Ranges.of([returned.call]))[0].event)
        ends, text = cast(Ends, returned.shown), returned.block.text
        shown = trim_text(text, Trim(position=recorded.position, head=ends.head, tail=ends.tail))
        sink.notify(
            CompactionEventKind.TOOL_RESPONSE_TRUNCATED,
            message=tool_response_truncated(
                called.block.name, count_byte_tokens(text), count_byte_tokens(shown)
            ),
        )
