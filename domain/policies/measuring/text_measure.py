"""Measures a text by rule: its length in some unit, divided by four and rounded."""

from dataclasses import dataclass
from enum import StrEnum

from ...token_estimate import CHARS_PER_TOKEN


class SizeUnit(StrEnum):
    RECKONED = "reckoned"
    """The store's tokens of each block, calibrated by what providers reported."""
    CODE_POINTS = "code-points"
    UTF_16 = "utf-16"
    """Units of two bytes, as JavaScript counts."""
    BYTES = "bytes"


class Rounding(StrEnum):
    """How a fraction of a token is rounded."""

    DOWN = "down"
    UP = "up"


@dataclass(frozen=True, slots=True)
class TextMeasure:
    """Counts the tokens of a text by its length."""

    unit: SizeUnit
    rounding: Rounding
    min_tokens: int = 0
    """The tokens of an empty text."""

    def measure_length(self, text: str) -> int:
        """Return the text's length in the unit; a lone surrogate counts as a whole character."""
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
        rest = CHARS_PER_TOKEN - 1 if self.rounding is _UP else 0
        return max(self.min_tokens, (length + rest) // CHARS_PER_TOKEN)


_UP, _BYTES, _UTF_16 = Rounding.UP, SizeUnit.BYTES, SizeUnit.UTF_16
"""Bound here because member access on an enumeration is slow."""
