"""A number of tokens that says where it is from: counted by the provider, or estimated here."""

from enum import StrEnum
from typing import NamedTuple


class SizeBasis(StrEnum):
    """Where a number of tokens is from."""

    REPORTED = "reported"
    """A provider counted the very prompt."""
    ESTIMATED = "estimated"
    """By the session's calibration; by the plain estimate where no call was reported."""


class PromptSizeChange(NamedTuple):
    """What whole prompts took before and after a compaction, system prompt and tools included."""

    before: int
    after: int
    basis: SizeBasis

    def __str__(self) -> str:
        return f"{self.before:,} -> {self.after:,} tokens, {self.basis}"


class PromptSize(NamedTuple):
    """What a whole prompt takes."""

    tokens: int
    basis: SizeBasis

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens, {self.basis}"
