"""What an event says, as one text to be searched: whoever said it, a tool's arguments included."""

import re
from typing import NamedTuple

from ...domain.blocks import AnyBlock, Block, Media, Text, ToolCall
from ...domain.compaction_events import Summary
from ...domain.event import Event
from ...domain.session_events import BlockAppended, ToolCallAbandoned, ToolCalled, ToolReturned

SUMMARY = "summary"
"""The kind of a text that stands for blocks, where blocks have their own."""
SAYING = (BlockAppended, ToolCalled, ToolReturned, ToolCallAbandoned, Summary)
EXCERPT = 120
"""Characters of the beginning that are shown in a list."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BLANKS = dict.fromkeys("bfnrt", " ")


class Said(NamedTuple):
    """One thing that was said."""

    kind: str
    turn: int | None
    name: str | None
    text: str


def said_in(event: Event) -> Said | None:
    """What an event says; None of an event that says nothing."""
    said = _said_in(event)
    return said and said._replace(text=whole(said.text), name=said.name and whole(said.name))


def whole(text: str) -> str:
    """A text that can be written as UTF-8: half a character becomes the sign for what is lost."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _said_in(event: Event) -> Said | None:
    match event:
        case BlockAppended(block=block, turn=turn) | ToolReturned(block=block, turn=turn):
            return Said(block.kind.value, turn, getattr(block, "name", None), _text(block))
        case ToolCalled(block=block, turn=turn):
            return Said(block.kind.value, turn, block.name, _text(block))
        case ToolCallAbandoned(reason=reason, turn=turn):
            return Said("tool_result", turn, None, reason)
        case Summary(text=text):
            return Said(SUMMARY, None, None, text)
        case _:
            return None


def excerpt(text: str) -> str:
    """The beginning of a text, in one line."""
    return " ".join(text[: 2 * EXCERPT].split())[:EXCERPT]


def _text(block: AnyBlock) -> str:
    match block:
        case Block():
            media = [block.media] if block.media else []
            return "\n".join(filter(None, (block.text, block.name, *map(_named, media))))
        case ToolCall():
            return f"{block.name} {_unescaped(block.arguments)}"
        case _ if isinstance(block.content, str):
            return block.content
        case _:
            return "\n".join(
                part.text if isinstance(part, Text) else _named(part)
                for part in block.content
                if isinstance(part, Text | Media)
            )


def _unescaped(arguments: str) -> str:
    """JSON text without its escapes: a line that begins with `note` would read `\\nnote`."""
    return _ESCAPE.sub(_meant, arguments) if "\\" in arguments else arguments


def _meant(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    return chr(int(code, 16)) if code else _BLANKS.get(letter, letter)


def _named(media: Media) -> str:
    return " ".join(filter(None, (media.name, media.url)))
