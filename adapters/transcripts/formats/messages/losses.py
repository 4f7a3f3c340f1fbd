"""Counts what a provider's messages could not hold of a view."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, ToolResult
from .....projections.history_view import HistoryView
from ..outgoing import OutgoingSession
from .dialect_detection import ANTHROPIC_MESSAGES

_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_MEDIA = frozenset({"image", "document", "image_url", "file", "input_image", "input_file"})


def count_losses(
    outgoing: OutgoingSession, view: HistoryView, provider: str, messages: list[Any]
) -> None:
    """Report the parts of a view that its messages lack."""
    held, said = Counter(_view_contents(view, provider)), Counter(_message_contents(messages))
    for what, count in held.items():
        if count > said[what]:
            outgoing.count_loss(what, count - said[what])


THINKING = "thinking"
MEDIA = "images and documents"
NATIVE_ITEMS = "items of another provider"
ERRORS = "error marks of tool results"


def _view_contents(view: HistoryView, provider: str) -> Iterator[str]:
    for entry in view.entries:
        if entry.shown is None:
            yield from _block_contents(entry.block, provider)


def _block_contents(block: AnyBlock, provider: str) -> Iterator[str]:
    match block:
        case Block(kind=Kind.THINKING):
            yield THINKING
        case Block(media=Media()):
            yield MEDIA
        case Block(native=native, text="") if native and native.provider != provider:
            yield NATIVE_ITEMS
        case ToolResult(content=content, is_error=is_error):
            if is_error and provider != ANTHROPIC_MESSAGES:
                yield ERRORS
            for part in () if isinstance(content, str) else content:
                if isinstance(part, Media):
                    yield MEDIA
                elif isinstance(part, NativePart) and part.native.provider != provider:
                    yield NATIVE_ITEMS
        case _:
            pass


def _message_contents(messages: list[Any]) -> Iterator[str]:
    left: list[Any] = [messages]
    while left:
        match left.pop():
            case list() as several:
                left += several
            case dict() as item:
                kind = item.get("type")
                if kind in _THOUGHTS:
                    yield THINKING
                elif kind in _MEDIA:
                    yield MEDIA
                left += [item[name] for name in ("content", "output") if name in item]
            case _:
                pass
