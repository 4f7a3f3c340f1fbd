"""Writes a session as messages: its view, as a model is sent it."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from .....domain.blocks import AnyBlock, Block, BlockKind, Media, NativePart, ToolResult
from .....projections.history_view import HistoryView
from .....projections.rendering import sendable, summary_message
from .....projections.rendering.catalog import PLAIN_RENDERERS
from .....projections.view_content import ViewEntry as Shown
from ..fields import JsonDict
from ..format import Format
from ..outgoing import OutgoingBlock, OutgoingCompaction, OutgoingSession
from ..summary_mark import SUMMARY_MARK, is_imported_summary, make_marked_text
from .message_file_reader import ANTHROPIC_MESSAGES, detect_dialect, read_message_file
from .message_reader import Dialect


def make_message_format(dialect: Dialect, description: str) -> Format:
    return Format(
        name=dialect.name,
        description=description,
        recognizes=lambda source: detect_dialect(source) == dialect.name,
        read=partial(read_message_file, dialect),
        write=partial(write_message_file, dialect),
        suffix=".json",
    )


def write_message_file(dialect: Dialect, outgoing: OutgoingSession) -> Iterator[bytes]:
    """Yield the view as a model is sent it."""
    body = render_outgoing(outgoing, dialect)
    name = dialect.message_lists[0]
    messages = body.pop(name)
    yield from encode_messages(body, name, messages)


def render_outgoing(outgoing: OutgoingSession, dialect: Dialect) -> JsonDict:
    """Render the view as a model is sent it; report what cannot be written as a loss."""
    view = outgoing.view if outgoing.is_view else _view_with_summaries(outgoing, dialect.name)
    summaries = frozenset(_find_summaries(view))
    view = _reword_summaries(view, summaries)
    if outgoing.source not in (None, dialect.name) and view.settings:
        # Another provider's settings do not apply here.
        outgoing.count_loss("request settings", len(view.request_settings))
        view = replace(view, settings=None)
    body = PLAIN_RENDERERS[dialect.name](view)
    name = dialect.message_lists[0]
    body[name] = _mark_summaries(body[name], summaries)
    count_losses(outgoing, view, dialect.name, body[name])
    return body


def encode_messages(body: JsonDict, name: str, messages: list[Any]) -> Iterator[bytes]:
    """Encode as JSON, a message on each line; only the array if there are no other fields."""
    if body:
        yield _encode_text(f'{json.dumps(body, ensure_ascii=False)[:-1]}, "{name}": ')
    yield from _join_messages(messages)
    yield b"}\n" if body else b"\n"


def _join_messages(messages: Iterable[Any]) -> Iterator[bytes]:
    yield b"["
    lead = ""
    for message in messages:
        yield _encode_text(lead + json.dumps(message, ensure_ascii=False))
        lead = ",\n"
    yield b"]"


def _encode_text(text: str) -> bytes:
    return sendable.replace_half_characters(text).encode()


def _view_with_summaries(outgoing: OutgoingSession, provider: str) -> HistoryView:
    """Return the whole log with marked summaries where they were made.

    A summary that the provider encrypted is in the log, and goes back to it unchanged.
    """
    view = outgoing.view
    encrypted = any(_is_compaction(entry.block, provider) for entry in view.entries)
    summaries: list[Shown] = []
    last, turn = 0, 1
    for part in outgoing.read_parts():
        match part:
            case OutgoingBlock(position=last, turn=turn):
                pass
            case OutgoingCompaction(boundary=boundary, summary=summary) if summary and not (
                encrypted and boundary.partial
            ):
                text = summary_message.wrap_summary(summary.text, summary.covers, boundary.hidden)
                block: AnyBlock = Block.developer(text, name="summary")
                summaries.append(Shown(last, block, turn, summary.tokens, b""))
    if not summaries:
        return view
    merged = sorted([*view.entries, *summaries], key=lambda entry: entry.position)
    return replace(view, entries=tuple(merged))


def _is_compaction(block: AnyBlock, provider: str) -> bool:
    item = sendable.parse_native_item(block.native, provider)
    return item is not None and "compaction" in item["type"]


def _find_summaries(view: HistoryView) -> Iterator[str]:
    yield summary_message.render_summary(view)
    yield from (
        make_marked_text(entry.block) for entry in view.entries if is_imported_summary(entry.block)
    )


def _reword_summaries(view: HistoryView, summaries: frozenset[str]) -> HistoryView:
    """Return the view with its summaries in the user's role; escape a user's copy of one."""
    entries = tuple(
        replace(entry, block=Block.user(make_marked_text(entry.block)))
        if is_imported_summary(entry.block)
        else replace(
            entry, block=Block.user(summary_message.escape_summary_marks(entry.block.text))
        )
        if entry.block.text in summaries and entry.block.kind is BlockKind.USER
        else entry
        for entry in view.entries
    )
    return replace(view, entries=entries)


def _mark_summaries(value: Any, summaries: frozenset[str]) -> Any:
    """Mark the fields with summary text; text that a user pastes has no such field."""
    match value:
        case list():
            return [_mark_summaries(part, summaries) for part in value]
        case {"role": "user", "content": [*_] as content}:
            return {**value, "content": _mark_summaries(content, summaries)}
        case {"text": str(text)} | {"role": "user", "content": str(text)} if text in summaries:
            return value | SUMMARY_MARK
        case _:
            return value


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
        match entry.block if entry.shown is None else None:
            case Block(kind=BlockKind.THINKING):
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
