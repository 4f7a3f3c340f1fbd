"""What an event says, as one text to be searched: whoever said it, a tool's arguments included."""

import re
from typing import NamedTuple

from ...domain.blocks import AnyBlock, Block, Media, Text, ToolCall
from ...domain.compaction_events import Summary
from ...domain.event import Event
from ...domain.session_events import BlockAppended, ToolCallAbandoned, ToolCalled, ToolReturned

SUMMARY_KIND = "summary"
"""The kind of a text that stands for blocks, where blocks have their own."""
SEARCHABLE_EVENTS = (BlockAppended, ToolCalled, ToolReturned, ToolCallAbandoned, Summary)
_EXCERPT_CHARS = 120
"""Characters of the beginning that are shown in a list."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BLANKS = dict.fromkeys("bfnrt", " ")


class SearchableText(NamedTuple):
    """One thing that was said."""

    kind: str
    turn: int | None
    name: str | None
    text: str


def read_searchable_text(event: Event) -> SearchableText | None:
    """What an event says; None of an event that says nothing."""
    said = _read_searchable_text(event)
    return said and said._replace(
        text=replace_surrogates(said.text), name=said.name and replace_surrogates(said.name)
    )


def replace_surrogates(text: str) -> str:
    """A text that can be written as UTF-8: half a character becomes the sign for what is lost."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _read_searchable_text(event: Event) -> SearchableText | None:
    match event:
        case BlockAppended(block=block, turn=turn) | ToolReturned(block=block, turn=turn):
            return SearchableText(
                block.kind.value, turn, getattr(block, "name", None), _read_block_text(block)
            )
        case ToolCalled(block=block, turn=turn):
            return SearchableText(block.kind.value, turn, block.name, _read_block_text(block))
        case ToolCallAbandoned(reason=reason, turn=turn):
            return SearchableText("tool_result", turn, None, reason)
        case Summary(text=text):
            return SearchableText(SUMMARY_KIND, None, None, text)
        case _:
            return None


def make_excerpt(text: str) -> str:
    """The beginning of a text, in one line."""
    return " ".join(text[: 2 * _EXCERPT_CHARS].split())[:_EXCERPT_CHARS]


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
    """JSON text without its escapes: a line that begins with `note` would read `\\nnote`."""
    return _ESCAPE.sub(_decode_escape, arguments) if "\\" in arguments else arguments


def _decode_escape(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    return chr(int(code, 16)) if code else _BLANKS.get(letter, letter)


def _name_media(media: Media) -> str:
    return " ".join(filter(None, (media.name, media.url)))
