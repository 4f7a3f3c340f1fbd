"""Defines each reference system's own estimate of tokens."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ..blocks import AnyBlock, Block, Kind, Media, ResultPart, Text, ToolCall, ToolResult


class EstimatorUnit(StrEnum):
    """The unit in which a text is measured before division."""

    CHARACTERS = "characters"
    """Code points, as Python counts."""
    UTF16 = "utf-16"
    """Code units, as JavaScript counts: two for an emoji."""
    BYTES = "utf-8"
    """Bytes, as Rust and Go count."""

    def measure(self, text: str) -> int:
        if self is EstimatorUnit.CHARACTERS or text.isascii():
            return len(text)
        if self is EstimatorUnit.BYTES:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2


_RUST_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
)


@dataclass(frozen=True)
class Estimator:
    """A count of units, divided; media and tool calls count as in the system."""

    name: str
    unit: EstimatorUnit = EstimatorUnit.CHARACTERS
    divisor: int = 4
    rounds_up: bool = True
    min_tokens: int = 0
    """Tokens of the smallest message with content."""
    extra_tokens: int = 0
    """Tokens for each message in addition to its content."""
    counts_blank: bool = True
    """Whether a blank text counts."""
    call_fields: tuple[str, ...] = ("name", "arguments")
    """The fields of a tool call that count."""
    media: Mapping[Kind, int] = field(default_factory=dict)
    """Units of an image or document by the kind of its block; 0 for other kinds."""
    placeholders: Mapping[Kind, str] = field(default_factory=dict)
    """The text that replaces a kind of block; `{name}` is a tool's name."""
    joiner: str = ""
    """The text between the parts of a tool result."""
    separator_units: int = 0
    """Units between the pieces of a message."""
    shows_debug: bool = False
    """Whether a tool result counts in Rust's debug format."""

    def count(self, block: AnyBlock, /) -> int:
        """Return the tokens of a block that is its own message."""
        return self.count_message((block,))

    def count_text(self, text: str, /) -> int:
        """Return the tokens of a text; 0 if it is empty."""
        return self._to_tokens(self._measure_text(text))

    def count_message(self, blocks: Iterable[AnyBlock]) -> int:
        """Return the tokens of a message made of these blocks."""
        units = [self._measure_block(block) for block in blocks]
        return (
            self._to_tokens(sum(units) + self.separator_units * (len(units) - 1))
            + self.extra_tokens
        )

    def _measure_block(self, block: AnyBlock) -> int:
        if (words := self.placeholders.get(block.kind)) is not None:
            name = block.name if isinstance(block, ToolCall) else ""
            return self._measure_text(words.format(name=name))
        if isinstance(block, ToolCall):
            said = {"id": block.tool_call_id, "name": block.name, "arguments": block.arguments}
            return sum(self._measure_text(said[part]) for part in self.call_fields)
        if isinstance(block, Block):
            return self._measure_text(block.text) + self._measure_media(block.kind, block.media)
        return self._measure_result(block)

    def _measure_result(self, block: ToolResult) -> int:
        parts = (Text(text=block.content),) if isinstance(block.content, str) else block.content
        units = [found for part in parts if (found := self._measure_part(part)) is not None]
        return sum(units) + self.unit.measure(self.joiner) * max(0, len(units) - 1)

    def _measure_part(self, part: ResultPart) -> int | None:
        """Return the units of a part of a tool result; None if it does not count."""
        if isinstance(part, Text):
            return self._measure_text(
                _escape_like_rust(part.text) if self.shows_debug else part.text
            )
        return (
            self._measure_media(Kind.TOOL_RESULT, part) or None if isinstance(part, Media) else None
        )

    def _measure_media(self, kind: Kind, media: Media | None) -> int:
        return self.media.get(kind, 0) if media is not None else 0

    def _measure_text(self, text: str) -> int:
        if not self.counts_blank and not text.strip():
            return 0
        return self.unit.measure(text)

    def _to_tokens(self, units: int) -> int:
        tokens = -(-units // self.divisor) if self.rounds_up else units // self.divisor
        return max(self.min_tokens, tokens) if units or self.counts_blank else 0


def _escape_like_rust(text: str) -> str:
    return f'Text(Text {{ text: "{text.translate(_RUST_ESCAPES)}" }})'


_MEDIA_KINDS = (Kind.USER, Kind.IMAGE, Kind.DOCUMENT, Kind.TOOL_RESULT)

KDCUBE_ESTIMATOR = Estimator(
    "kdcube", rounds_up=False, min_tokens=1, counts_blank=False, call_fields=("arguments",)
)
"""The fallback of rolling-timeline without a tokenizer; media count nothing."""
TUNACODE_ESTIMATOR = Estimator(
    "tunacode",
    rounds_up=False,
    call_fields=("id", "name", "arguments"),
    media=dict.fromkeys(_MEDIA_KINDS, len("[image]")),
    joiner=" ",
)
KLAUDE_ESTIMATOR = Estimator("klaude", min_tokens=1, media=dict.fromkeys(_MEDIA_KINDS, 1_200))
PI_ESTIMATOR = Estimator(
    "pi", unit=EstimatorUnit.UTF16, media={Kind.TOOL_RESULT: 4_800, Kind.DEVELOPER: 4_800}
)
GOAT_ESTIMATOR = Estimator(
    "goat",
    unit=EstimatorUnit.BYTES,
    rounds_up=False,
    extra_tokens=4,
    call_fields=(),
    placeholders={Kind.THINKING: ""},
)
QBIT_ESTIMATOR = Estimator(
    "qbit",
    unit=EstimatorUnit.BYTES,
    placeholders={
        Kind.IMAGE: "[image]",
        Kind.DOCUMENT: "[document]",
        Kind.THINKING: "[reasoning]",
        Kind.TOOL_CALL: "[tool: {name}]",
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
