"""Reads an event as one searchable text, including a tool's arguments."""

import re
from typing import NamedTuple

from ...domain.blocks import AnyBlock, Block, Media, Text, ToolCall
from ...domain.compaction_events import Summary
from ...domain.event import Event
from ...domain.session_events import BlockAppended, ToolCallAbandoned, ToolCalled, ToolReturned
from ..rendering.sendable import replace_half_characters

SUMMARY_KIND = "summary"
"""The kind of a summary, next to the kinds of blocks."""
SEARCHABLE_EVENTS = (BlockAppended, ToolCalled, ToolReturned, ToolCallAbandoned, Summary)
_EXCERPT_CHARS = 120
"""The length of an excerpt in a list."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BLANKS = dict.fromkeys("bfnrt", " ")


class SearchableText(NamedTuple):
    kind: str
    turn: int | None
    name: str | None
    text: str


def read_searchable_text(event: Event) -> SearchableText | None:
    """Return an event's text; None for an event without any."""
    match event:
        case BlockAppended() | ToolCalled() | ToolReturned():
            block, name = event.block, getattr(event.block, "name", None)
            said = SearchableText(block.kind.value, event.turn, name, _read_block_text(block))
        case ToolCallAbandoned(reason=reason, turn=turn):
            said = SearchableText("tool_result", turn, None, reason)
        case Summary(text=text):
            said = SearchableText(SUMMARY_KIND, None, None, text)
        case _:
            return None
    name = said.name and replace_half_characters(said.name)
    return said._replace(text=replace_half_characters(said.text), name=name)


def make_excerpt(text: str, most: int = _EXCERPT_CHARS) -> str:
    return " ".join(text[: 2 * most].split())[:most]


def _read_block_text(block: AnyBlock) -> str:
    match block:
        case Block():
            media = [block.media] if block.media else []
            return "\n".join(filter(None, (block.text, block.name, *map(_name_media, media))))
        case ToolCall():
            return f"{block.name} {_unescape(block.arguments)}"
        case _ if isinstance(block.content, str):
            return block.content
        case _:
            return "\n".join(
                part.text if isinstance(part, Text) else _name_media(part)
                for part in block.content
                if isinstance(part, Text | Media)
            )


def _unescape(arguments: str) -> str:
    r"""Return JSON text without its escapes, since `\nnote` would hide the word `note`."""
    return _ESCAPE.sub(_decode_escape, arguments) if "\\" in arguments else arguments


def _decode_escape(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    return chr(int(code, 16)) if code else _BLANKS.get(letter, letter)


def _name_media(media: Media) -> str:
    return " ".join(filter(None, (media.name, media.url)))
