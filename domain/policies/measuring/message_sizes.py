"""Measures a message by the length of its texts, with a placeholder for everything else."""

import re
import unicodedata
from enum import StrEnum
from json.encoder import encode_basestring_ascii

from ...blocks import AnyBlock, Block, Kind, ToolCall
from ...messages import Message
from .text_measure import SizeUnit, TextMeasure


class ResultText(StrEnum):
    """Which form of a tool result is counted."""

    PLAIN = "plain"
    """Its text."""
    DEBUG = "debug"
    """Its text in Rust's debug format: wrapped in its types, quoted and escaped."""


_DEBUG = ResultText.DEBUG
_PLACEHOLDERS = {Kind.THINKING: "[reasoning]", Kind.IMAGE: "[image]", Kind.DOCUMENT: "[document]"}
"""The texts that replace blocks whose content is not counted."""
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
"""Characters printed with a backslash; the backslash comes first because the others add more of it.
"""
_UNCHANGED_IN_JSON = re.compile(r"[ -~\n\r\t]*")
"""Text that Rust's debug format prints exactly as JSON does."""
_NON_ASCII = re.compile(r"[^ -~]")
_COMBINING_MARKS = frozenset({"Mn", "Me"})
"""Unicode categories of characters that combine with the one before."""


def count_message_text_tokens(message: Message, measure: TextMeasure, results: ResultText) -> int:
    """Return the tokens of one message; in the unit `reckoned`, the store's count of its blocks."""
    items = message.items
    if measure.unit is SizeUnit.RECKONED:
        return items[0].tokens if len(items) == 1 else message.tokens
    if len(items) == 1:
        return measure.count_tokens(_render_block(items[0].block, results))
    return measure.count_tokens("\n".join([_render_block(item.block, results) for item in items]))


def escape_like_rust(text: str) -> str:
    if _UNCHANGED_IN_JSON.fullmatch(text):  # true of most results; JSON is several times as fast
        return encode_basestring_ascii(text)
    for character, printed in _ESCAPES.items():
        text = text.replace(character, printed)
    if not (text.isascii() and text.isprintable()):
        text = _NON_ASCII.sub(_escape_character, text)
    return f'"{text}"'


def _render_block(block: AnyBlock, results: ResultText) -> str:
    if isinstance(block, Block):
        return _PLACEHOLDERS.get(block.kind, block.text)
    if isinstance(block, ToolCall):
        return f"[tool: {block.name}]"  # the arguments are not counted
    if results is _DEBUG:
        return f"Text(Text {{ text: {escape_like_rust(block.text)} }})"
    return "\n".join([block.text, *("[image]" for _ in block.media)])


def _escape_character(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable() and unicodedata.category(character) not in _COMBINING_MARKS:
        return character
    return f"\\u{{{ord(character):x}}}"
