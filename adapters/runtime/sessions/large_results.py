"""Tool results that are too large to be shown whole: which, how much of them, and who is told."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, cast

from ....domain.blocks import AnyBlock, Text, ToolResult
from ....domain.compaction import MAIN
from ....domain.compaction_events import Trim
from ....domain.hooks import Happening, Moment
from ....domain.ranges import Ranges
from ....domain.session_events import Ends, ToolCalled, ToolReturned
from ....domain.token_budget import CHARS_PER_TOKEN
from ....domain.tool_output import LEAST_SHOWN, ends_within, tokens_of
from ....domain.trims import trimmed
from ....projections.hook_payloads import tool_response_truncated
from ..compaction.listeners import told

if TYPE_CHECKING:
    from ...settings.settings import Settings
    from .session_log import SessionLog

LONGEST = 4
"""Bytes that one character may have."""


def shown_of(blocks: Iterable[AnyBlock], settings: Callable[[], "Settings"]) -> list[Ends | None]:
    """What views show of blocks that are appended; None is all of it.

    What holds more than text is left as it is: half an image is none. Settings are read where
    there is something that they may shorten: most appends do without them.
    """
    return [_ends(block.text, settings) if _is_text(block) else None for block in blocks]


def _is_text(block: AnyBlock) -> bool:
    if not isinstance(block, ToolResult):
        return False
    content = block.content
    return isinstance(content, str) or all(isinstance(part, Text) for part in content)


def _ends(text: str, settings: Callable[[], "Settings"]) -> Ends | None:
    if len(text) * LONGEST <= LEAST_SHOWN * CHARS_PER_TOKEN:
        return None
    context = settings().context
    most = context.max_tool_response_tokens if context else None
    return ends_within(text, most) if most is not None else None


def tell_of(log: "SessionLog", results: Ranges) -> None:
    """Tell those who listen that these are shown shortened."""
    for event in _events(log, results):
        happening = Happening(
            Moment.TOOL_RESPONSE_TRUNCATED, log.key, log.namespace, MAIN, message=event
        )
        told(log.listeners, happening)


def _events(log: "SessionLog", results: Ranges) -> Iterator[dict[str, object]]:
    store, chain = log.events, log.chain()
    for recorded in store.read(chain, results):
        returned = cast(ToolReturned, recorded.event)
        called = cast(ToolCalled, store.read(chain, Ranges.of([returned.call]))[0].event)
        ends, text = cast(Ends, returned.shown), returned.block.text
        shown = trimmed(text, Trim(position=recorded.position, head=ends.head, tail=ends.tail))
        yield tool_response_truncated(called.block.name, tokens_of(text), tokens_of(shown))
