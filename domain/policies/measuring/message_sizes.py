"""How large a message is to a program that counts texts: what it says, and a word for the rest."""

import re
import unicodedata
from enum import StrEnum
from json.encoder import encode_basestring_ascii

from ...blocks import AnyBlock, Block, Kind, ToolCall
from ...messages import Message
from .measure import Measure, Unit


class ResultText(StrEnum):
    """What of a tool result is counted."""

    PLAIN = "plain"
    """Its text."""
    DEBUG = "debug"
    """Its text as Rust prints a value for debugging: wrapped in its types, quoted and escaped."""


_DEBUG = ResultText.DEBUG
PLACEHOLDERS = {Kind.THINKING: "[reasoning]", Kind.IMAGE: "[image]", Kind.DOCUMENT: "[document]"}
"""What stands for blocks whose content is not counted."""
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
"""What is printed with a backslash; that itself comes first, for the others bring more of it."""
AS_IN_JSON = re.compile(r"[ -~\n\r\t]*")
"""What Rust prints for debugging just as JSON has it."""
NO_ASCII = re.compile(r"[^ -~]")
EXTENDING = frozenset({"Mn", "Me"})
"""Unicode categories of what is drawn upon the character before."""


def message_tokens(message: Message, measure: Measure, results: ResultText) -> int:
    """Tokens of one message; `reckoned` is what the store makes of its blocks."""
    items = message.items
    if measure.unit is Unit.RECKONED:
        return items[0].tokens if len(items) == 1 else message.tokens
    if len(items) == 1:
        return measure.tokens(_said(items[0].block, results))
    return measure.tokens("\n".join([_said(item.block, results) for item in items]))


def as_debugged(text: str) -> str:
    """A string as Rust prints it for debugging."""
    if AS_IN_JSON.fullmatch(text):  # most results are, and JSON is several times as fast
        return encode_basestring_ascii(text)
    for character, printed in ESCAPES.items():
        text = text.replace(character, printed)
    if not (text.isascii() and text.isprintable()):
        text = NO_ASCII.sub(_escaped, text)
    return f'"{text}"'


def _said(block: AnyBlock, results: ResultText) -> str:
    if isinstance(block, Block):
        return PLACEHOLDERS.get(block.kind, block.text)
    if isinstance(block, ToolCall):
        return f"[tool: {block.name}]"  # its arguments are not counted
    if results is _DEBUG:
        return f"Text(Text {{ text: {as_debugged(block.text)} }})"
    return "\n".join([block.text, *("[image]" for _ in block.media)])


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable() and unicodedata.category(character) not in EXTENDING:
        return character
    return f"\\u{{{ord(character):x}}}"
