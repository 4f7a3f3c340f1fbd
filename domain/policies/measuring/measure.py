"""How large a text is by rule: characters in one unit or another, by four, rounded."""

from dataclasses import dataclass
from enum import StrEnum

from ...token_budget import CHARS_PER_TOKEN


class Unit(StrEnum):
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
class Measure:
    """Tokens of a text by its length."""

    unit: Unit
    rounding: Rounding
    least: int = 0
    """What even an empty text counts as."""

    def length(self, text: str) -> int:
        """The text's length in the unit; half a character counts as a whole one."""
        if self.unit is _BYTES:
            return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if self.unit is _UTF_16:
            if text.isascii():
                return len(text)
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        return len(text)

    def tokens(self, text: str) -> int:
        return self.tokens_of(self.length(text))

    def tokens_of(self, length: int) -> int:
        """Tokens of so much text, in the unit."""
        rest = CHARS_PER_TOKEN - 1 if self.rounding is _UP else 0
        return max(self.least, (length + rest) // CHARS_PER_TOKEN)


_UP, _BYTES, _UTF_16 = Rounding.UP, Unit.BYTES, Unit.UTF_16
"""Named here, for an enumeration takes long to be asked for one of its own."""
