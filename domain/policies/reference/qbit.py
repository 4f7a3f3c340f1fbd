"""Answers as qbit did: messages are measured in bytes, and those with the highest scores stay."""

import re
import unicodedata
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii

from ...blocks import AnyBlock, BlockKind, Text, ToolCall, ToolResult
from ...context_limit import LevelMarks
from ...item import Message
from ...token_estimate import CHARS_PER_TOKEN, count_bytes
from ...window import Window
from ..policy import quirk
from ..scored_pruning import ScoredPruning, WeighedMessages


@dataclass(frozen=True)
class QbitAsShipped(ScoredPruning):
    """Protects messages, not turns; calls may leave without their results."""

    preset: str = quirk("as_shipped")

    @property
    def level_marks(self) -> LevelMarks:
        """Where the levels begin: above their share, and critical only where all is in use."""
        usual = super().level_marks
        return LevelMarks(usual.warning, usual.alert, critical=1.0, is_past=True)

    def count_in_use(self, window: Window) -> int:
        return self.weigh_window(window).total

    def weigh_window(self, window: Window) -> WeighedMessages:
        """Weigh the messages once, to say whether they are too many and then which leave."""
        return window.find_once(type(self).__name__, lambda: self.weigh(window.items))

    def count_tokens(self, message: Message) -> int:
        # A byte is between the pieces of a message.
        size = sum([_measure_block(item.block) for item in message.items]) + len(message.items) - 1
        return -(-size // CHARS_PER_TOKEN)

    def choose_staying(self, weighed: WeighedMessages, in_use: int, target: int) -> frozenset[int]:
        """Return what stays while there is room, the best first; one too large is skipped."""
        count, tokens = len(weighed.messages), weighed.tokens
        if in_use <= target:
            return frozenset(range(count))
        untouched = weighed.find_untouchable(max(0, count - self.protected_turns))
        others = [index for index in range(count) if index not in untouched]
        room = target - in_use + sum(tokens[index] for index in others)
        staying = set(untouched)
        if room > 0:  # without any room, even empty messages leave
            for index in sorted(others, key=weighed.priorities.__getitem__, reverse=True):
                if tokens[index] <= room:
                    room -= tokens[index]
                    staying.add(index)
        return frozenset(staying)


_PLACEHOLDER_BYTES = {
    BlockKind.IMAGE: len("[image]"),
    BlockKind.DOCUMENT: len("[document]"),
    BlockKind.THINKING: len("[reasoning]"),
}


def _measure_block(block: AnyBlock) -> int:
    # Exact types, because pydantic makes `isinstance` slow wherever the answer is no.
    if type(block) is ToolCall:
        return len("[tool: ]") + count_bytes(block.name)
    if type(block) is ToolResult:
        parts = [block.content] if isinstance(block.content, str) else block.content
        texts = [part.text if isinstance(part, Text) else part for part in parts]
        sizes = [_measure_result(text) for text in texts if isinstance(text, str)]
        return sum(sizes) + max(0, len(sizes) - 1)
    size = _PLACEHOLDER_BYTES.get(block.kind)
    return count_bytes(block.text) if size is None else size


def _measure_result(text: str) -> int:
    return count_bytes(f"Text(Text {{ text: {escape_like_rust(text)} }})")


_RUST_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
"""Characters printed with a backslash; the backslash comes first because the others add more of it.
"""
_SAME_IN_JSON = re.compile(r"[ -~\n\r\t]*")
"""Text that Rust's debug format prints exactly as JSON does."""
_NON_ASCII = re.compile(r"[^ -~]")
_COMBINING_MARKS = frozenset({"Mn", "Me"})
"""Unicode categories of characters that combine with the one before."""


def escape_like_rust(text: str) -> str:
    """Return a text as Rust's debug format prints it, in quotes."""
    if _SAME_IN_JSON.fullmatch(text):  # true of most results; JSON is several times as fast
        return encode_basestring_ascii(text)
    for character, printed in _RUST_ESCAPES.items():
        text = text.replace(character, printed)
    if not (text.isascii() and text.isprintable()):
        text = _NON_ASCII.sub(_escape_character, text)
    return f'"{text}"'


def _escape_character(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable() and unicodedata.category(character) not in _COMBINING_MARKS:
        return character
    return f"\\u{{{ord(character):x}}}"
