"""A number of tokens that says where it is from: counted by the provider, or estimated here."""

from enum import StrEnum
from typing import NamedTuple


class Basis(StrEnum):
    """Where a number of tokens is from."""

    REPORTED = "reported"
    """A provider counted the very prompt."""
    ESTIMATED = "estimated"
    """By the session's calibration; by the plain estimate where no call was reported."""


class Sizes(NamedTuple):
    """What whole prompts took before and after a compaction, system prompt and tools included."""

    before: int
    after: int
    basis: Basis

    def __str__(self) -> str:
        return f"{self.before:,} -> {self.after:,} tokens, {self.basis}"


class Size(NamedTuple):
    """What a whole prompt takes."""

    tokens: int
    basis: Basis

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens, {self.basis}"
