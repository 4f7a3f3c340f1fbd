"""Defines how each reference system estimates tokens: by the length of texts, divided by four."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from json.encoder import encode_basestring_ascii
from operator import attrgetter

from ..blocks import AnyBlock, Block, BlockKind, Media, ResultPart, Text, ToolCall, ToolResult
from ..token_estimate import CHARS_PER_TOKEN


class SizeUnit(StrEnum):
    """What a program measures texts in."""

    CODE_POINTS = "code-points"
    UTF_16 = "utf-16"
    """Units of two bytes, as JavaScript counts."""
    BYTES = "bytes"
    """As Rust and Go count."""


_BYTES, _UTF_16 = SizeUnit.BYTES, SizeUnit.UTF_16
"""Bound here because member access on an enumeration is slow."""


def measure_length(text: str, unit: SizeUnit) -> int:
    """Return a text's length in the unit; a lone surrogate counts as a whole character."""
    if text.isascii():
        return len(text)
    if unit is _BYTES:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 if unit is _UTF_16 else len(text)


@dataclass(frozen=True)
class Estimator:
    """A count of units, divided; media and tool calls count as in the system."""

    name: str
    unit: SizeUnit = SizeUnit.CODE_POINTS
    rounds_up: bool = True
    min_tokens: int = 0
    """Tokens of the smallest message with content."""
    extra_tokens: int = 0
    """Tokens for each message in addition to its content."""
    counts_blank: bool = True
    """Whether a blank text counts."""
    read_call: Callable[[ToolCall], tuple[str, ...]] = attrgetter("name", "arguments")
    """Returns the texts of a tool call that count."""
    media: Mapping[BlockKind, int] = field(default_factory=dict)
    """Units of an image or document by the kind of its block; 0 for other kinds."""
    describe_media: Callable[[Media], str] | None = None
    """Returns the text that counts for an image or document, instead of `media`."""
    placeholders: Mapping[BlockKind, str] = field(default_factory=dict)
    """The text that replaces a kind of block; `{name}` is a tool's name."""
    joiner: str = ""
    """The text between the parts of a tool result."""
    separator_units: int = 0
    """Units between the pieces of a message."""
    shows_debug: bool = False
    """Whether a tool result counts in Rust's debug format."""

    def count(self, block: AnyBlock, /) -> int:
        """Return the tokens of a block that is its own message."""
        return self._to_tokens(self._measure_block(block)) + self.extra_tokens

    def count_text(self, text: str, /) -> int:
        """Return the tokens of a text; 0 if it is empty."""
        return self._to_tokens(self._measure_text(text))

    def count_message(self, blocks: Sequence[AnyBlock]) -> int:
        """Return the tokens of a message made of these blocks."""
        units = self.separator_units * (len(blocks) - 1)
        for block in blocks:
            units += self._measure_block(block)
        return self._to_tokens(units) + self.extra_tokens

    def _measure_block(self, block: AnyBlock) -> int:
        if self.placeholders and (words := self.placeholders.get(block.kind)) is not None:
            name = block.name if isinstance(block, ToolCall) else ""
            return self._measure_text(words.format(name=name))
        # Exact types, because pydantic makes `isinstance` slow wherever the answer is no.
        if type(block) is ToolCall:
            return sum(map(self._measure_text, self.read_call(block)))
        if type(block) is ToolResult:
            if isinstance(block.content, str):
                return self._measure_result_text(block.content)
            return self._measure_parts(block.content)
        assert isinstance(block, Block), "all other kinds are blocks"
        text = block.text
        is_plain = self.counts_blank and text.isascii()  # most are: a call less for each
        length = len(text) if is_plain else self._measure_text(text)
        return length + self._measure_media(block.kind, block.media) if block.media else length

    def _measure_parts(self, parts: Iterable[ResultPart]) -> int:
        """Return the units of a tool result; a part that only its provider reads has none."""
        units = []
        for part in parts:
            if isinstance(part, Text):
                units.append(self._measure_result_text(part.text))
            elif isinstance(part, Media) and (
                media := self._measure_media(BlockKind.TOOL_RESULT, part)
            ):
                units.append(media)
        return sum(units) + len(self.joiner) * max(0, len(units) - 1)

    def _measure_media(self, kind: BlockKind, media: Media) -> int:
        if self.describe_media is not None:
            return measure_length(self.describe_media(media), self.unit)
        return self.media.get(kind, 0)

    def _measure_result_text(self, text: str) -> int:
        if self.shows_debug:
            text = f"Text(Text {{ text: {escape_like_rust(text)} }})"
        return self._measure_text(text)

    def _measure_text(self, text: str) -> int:
        if self.counts_blank or text.strip():
            return len(text) if text.isascii() else measure_length(text, self.unit)
        return 0

    def _to_tokens(self, units: int) -> int:
        if not units and not self.counts_blank:
            return 0
        tokens = (units + (CHARS_PER_TOKEN - 1) * self.rounds_up) // CHARS_PER_TOKEN
        # Called for every block, and `max` would take longer than all of the rest.
        return tokens if tokens > self.min_tokens else self.min_tokens  # noqa: FURB136


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


def _read_arguments(call: ToolCall) -> tuple[str, ...]:
    return (call.arguments,)


def _read_nothing(_: ToolCall) -> tuple[str, ...]:
    return ()


_MEDIA_KINDS = (BlockKind.USER, BlockKind.IMAGE, BlockKind.DOCUMENT, BlockKind.TOOL_RESULT)

KDCUBE_ESTIMATOR = Estimator(
    "kdcube", rounds_up=False, min_tokens=1, counts_blank=False, read_call=_read_arguments
)
"""The fallback of rolling-timeline without a tokenizer; media count nothing."""
TUNACODE_ESTIMATOR = Estimator(
    "tunacode",
    rounds_up=False,
    read_call=attrgetter("tool_call_id", "name", "arguments"),
    media=dict.fromkeys(_MEDIA_KINDS, len("[image]")),
    joiner=" ",
)
KLAUDE_ESTIMATOR = Estimator("klaude", min_tokens=1, media=dict.fromkeys(_MEDIA_KINDS, 1_200))
PI_ESTIMATOR = Estimator(
    "pi", unit=SizeUnit.UTF_16, media={BlockKind.TOOL_RESULT: 4_800, BlockKind.DEVELOPER: 4_800}
)
GOAT_ESTIMATOR = Estimator(
    "goat",
    unit=SizeUnit.BYTES,
    rounds_up=False,
    extra_tokens=4,
    read_call=_read_nothing,
    placeholders={BlockKind.THINKING: ""},
)
QBIT_ESTIMATOR = Estimator(
    "qbit",
    unit=SizeUnit.BYTES,
    placeholders={
        BlockKind.IMAGE: "[image]",
        BlockKind.DOCUMENT: "[document]",
        BlockKind.THINKING: "[reasoning]",
        BlockKind.TOOL_CALL: "[tool: {name}]",
    },
    joiner="\n",
    separator_units=1,
    shows_debug=True,
)

ESTIMATORS = {
    one.name: one
    for one in (
        KDCUBE_ESTIMATOR,
        TUNACODE_ESTIMATOR,
        KLAUDE_ESTIMATOR,
        PI_ESTIMATOR,
        GOAT_ESTIMATOR,
        QBIT_ESTIMATOR,
    )
}
