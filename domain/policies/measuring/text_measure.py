"""How large a text is by rule: characters in one unit or another, by four, rounded."""

from dataclasses import dataclass
from enum import StrEnum

from ...token_estimate import CHARS_PER_TOKEN


class SizeUnit(StrEnum):
    """What is counted."""

    RECKONED = "reckoned"
    """What the store reckons of each block, by what providers reported."""
    CODE_POINTS = "code-points"
    UTF_16 = "utf-16"
    """Units of two bytes, as JavaScript counts."""
    BYTES = "bytes"
    """Of UTF-8."""


class Rounding(StrEnum):
    """What becomes of a part of a token."""

    DOWN = "down"
    UP = "up"


@dataclass(frozen=True, slots=True)
class TextMeasure:
    """Tokens of a text by its length."""

    unit: SizeUnit
    rounding: Rounding
    min_tokens: int = 0
    """What even an empty text counts as."""

    def measure_length(self, text: str) -> int:
        """The text's length in the unit; half a character counts as a whole one."""
        if self.unit is _BYTES:
            return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if self.unit is _UTF_16:
            if text.isascii():
                return len(text)
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        return len(text)

    def count_tokens(self, text: str) -> int:
        return self.convert_to_tokens(self.measure_length(text))

    def convert_to_tokens(self, length: int) -> int:
        """Tokens of so much text, in the unit."""
        rest = CHARS_PER_TOKEN - 1 if self.rounding is _UP else 0
        return max(self.min_tokens, (length + rest) // CHARS_PER_TOKEN)


_UP, _BYTES, _UTF_16 = Rounding.UP, SizeUnit.BYTES, SizeUnit.UTF_16
"""Named here, for an enumeration takes long to be asked for one of its own."""
