"""Tool results that are too large to be shown whole: which, how much of them, and who is told."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from ..domain.blocks import AnyBlock, Text, ToolResult
from ..domain.compaction import MAIN
from ..domain.compaction_events import Trim
from ..domain.ranges import Ranges
from ..domain.session_events import Ends, ToolCalled, ToolReturned
from ..domain.tool_output import ends_within, tokens_of
from ..projections.dialects.qbit import tool_response_truncated
from ..projections.history_view import trimmed

if TYPE_CHECKING:
    from .stored_session import StoredSession


def shown_of(block: AnyBlock, most_tokens: int | None) -> Ends | None:
    """What views show of a block that is appended; None is all of it.

    What holds more than text is left as it is: half an image is none.
    """
    if most_tokens is None or not isinstance(block, ToolResult):
        return None
    if not isinstance(block.content, str) and not all(
        isinstance(part, Text) for part in block.content
    ):
        return None
    return ends_within(block.text, most_tokens)


def tell_of(session: "StoredSession", results: Ranges) -> None:
    """Tell those who listen that these are shown shortened."""
    from .compacting.happenings import Happening, Moment  # noqa: PLC0415 - who needs it pays for it
    from .compacting.story import told  # noqa: PLC0415

    for event in _events(session, results):
        happening = Happening(
            Moment.TOOL_RESPONSE_TRUNCATED, session.key, session.namespace, MAIN, message=event
        )
        told(session.store.all_listeners, happening)


def _events(session: "StoredSession", results: Ranges) -> Iterator[dict[str, object]]:
    store = session.store.events
    chain = store.session_chain(session.namespace, session.key)
    for recorded in store.read(chain, results):
        returned = cast(ToolReturned, recorded.event)
        called = cast(ToolCalled, store.read(chain, Ranges.of([returned.call]))[0].event)
        ends, text = cast(Ends, returned.shown), returned.block.text
        shown = trimmed(text, Trim(position=recorded.position, head=ends.head, tail=ends.tail))
        yield tool_response_truncated(called.block.name, tokens_of(text), tokens_of(shown))
