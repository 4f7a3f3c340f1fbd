"""Defines token counts that name their source: the provider's count, or an estimate."""

from enum import StrEnum
from typing import NamedTuple


class SizeBasis(StrEnum):
    REPORTED = "reported"
    """The provider counted this prompt."""
    ESTIMATED = "estimated"
    """By the session's calibration, or by the plain estimate if no call was reported."""


class PromptSizeChange(NamedTuple):
    """The sizes of the whole prompt before and after a compaction, with system prompt and tools."""

    before: int
    after: int
    basis: SizeBasis

    def __str__(self) -> str:
        return f"{self.before:,} -> {self.after:,} tokens, {self.basis}"


class PromptSize(NamedTuple):
    tokens: int
    basis: SizeBasis

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens, {self.basis}"
