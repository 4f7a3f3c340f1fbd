"""How large policies believe things to be: each reference system's own estimate, as a value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ..blocks import AnyBlock, Block, Kind, Media, Part, Text, ToolCall, ToolResult


class Unit(StrEnum):
    """What a text is measured in before it is divided."""

    CHARACTERS = "characters"
    """Code points, as Python counts."""
    UTF16 = "utf-16"
    """Code units, as JavaScript counts: two for an emoji."""
    BYTES = "utf-8"
    """Bytes, as Rust and Go count."""

    def of(self, text: str) -> int:
        if self is Unit.CHARACTERS or text.isascii():
            return len(text)
        if self is Unit.BYTES:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2


_RUST_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
)


@dataclass(frozen=True)
class Estimator:
    """A count of units, divided; media and tool calls as the system in question takes them."""

    name: str
    unit: Unit = Unit.CHARACTERS
    divisor: int = 4
    rounds_up: bool = True
    least: int = 0
    """Tokens of the smallest message that says anything."""
    extra: int = 0
    """Tokens for each message besides its content."""
    counts_blank: bool = True
    """Whether a text of nothing but space counts."""
    call: tuple[str, ...] = ("name", "arguments")
    """The fields of a tool call that count."""
    media: Mapping[Kind, int] = field(default_factory=dict)
    """Units of an image or document by the kind of the block it stands in; 0 for others."""
    says: Mapping[Kind, str] = field(default_factory=dict)
    """The words that stand for a kind of block, whatever is in it; `{name}` is a tool's."""
    joint: str = ""
    """What stands between the parts of a tool result."""
    between: int = 0
    """Units between the pieces of a message."""
    shows_debug: bool = False
    """Whether a tool result counts as Rust's debugging output shows it."""

    def count(self, block: AnyBlock, /) -> int:
        """Tokens of a block that is a message of its own."""
        return self.count_message((block,))

    def count_text(self, text: str, /) -> int:
        """Tokens of a piece of text; 0 where there is none."""
        return self._divided(self._measured(text))

    def count_message(self, blocks: Iterable[AnyBlock]) -> int:
        """Tokens of a message that these blocks are the pieces of."""
        units = [self._units(block) for block in blocks]
        return self._divided(sum(units) + self.between * (len(units) - 1)) + self.extra

    def _units(self, block: AnyBlock) -> int:
        """What a block adds to its message before it is divided."""
        if (words := self.says.get(block.kind)) is not None:
            name = block.name if isinstance(block, ToolCall) else ""
            return self._measured(words.format(name=name))
        if isinstance(block, ToolCall):
            said = {"id": block.tool_call_id, "name": block.name, "arguments": block.arguments}
            return sum(self._measured(said[part]) for part in self.call)
        if isinstance(block, Block):
            return self._measured(block.text) + self._media(block.kind, block.media)
        return self._result(block)

    def _result(self, block: ToolResult) -> int:
        parts = (Text(text=block.content),) if isinstance(block.content, str) else block.content
        units = [found for part in parts if (found := self._part(part)) is not None]
        return sum(units) + self.unit.of(self.joint) * max(0, len(units) - 1)

    def _part(self, part: Part) -> int | None:
        """Units of a part of a tool result; None where it does not count."""
        if isinstance(part, Text):
            return self._measured(_as_debugged(part.text) if self.shows_debug else part.text)
        return self._media(Kind.TOOL_RESULT, part) or None if isinstance(part, Media) else None

    def _media(self, kind: Kind, media: Media | None) -> int:
        return self.media.get(kind, 0) if media is not None else 0

    def _measured(self, text: str) -> int:
        if not self.counts_blank and not text.strip():
            return 0
        return self.unit.of(text)

    def _divided(self, units: int) -> int:
        tokens = -(-units // self.divisor) if self.rounds_up else units // self.divisor
        return max(self.least, tokens) if units or self.counts_blank else 0


def _as_debugged(text: str) -> str:
    return f'Text(Text {{ text: "{text.translate(_RUST_ESCAPES)}" }})'


_EVERYWHERE = (Kind.USER, Kind.IMAGE, Kind.DOCUMENT, Kind.TOOL_RESULT)

KDCUBE = Estimator("kdcube", rounds_up=False, least=1, counts_blank=False, call=("arguments",))
"""What rolling-timeline falls back to where it finds no tokenizer; media are free."""
TUNACODE = Estimator(
    "tunacode",
    rounds_up=False,
    call=("id", "name", "arguments"),
    media=dict.fromkeys(_EVERYWHERE, len("[image]")),
    joint=" ",
)
KLAUDE = Estimator("klaude", least=1, media=dict.fromkeys(_EVERYWHERE, 1_200))
PI = Estimator("pi", unit=Unit.UTF16, media={Kind.TOOL_RESULT: 4_800, Kind.DEVELOPER: 4_800})
GOAT = Estimator(
    "goat", unit=Unit.BYTES, rounds_up=False, extra=4, call=(), says={Kind.THINKING: ""}
)
QBIT = Estimator(
    "qbit",
    unit=Unit.BYTES,
    says={
        Kind.IMAGE: "[image]",
        Kind.DOCUMENT: "[document]",
        Kind.THINKING: "[reasoning]",
        Kind.TOOL_CALL: "[tool: {name}]",
    },
    joint="\n",
    between=1,
    shows_debug=True,
)

ESTIMATORS = {one.name: one for one in (KDCUBE, TUNACODE, KLAUDE, PI, GOAT, QBIT)}
