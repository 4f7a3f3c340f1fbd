"""Defines the evidence that a model was sent the view that the record of its call names."""

from dataclasses import dataclass
from enum import StrEnum


class RequestProof(StrEnum):
    """The evidence for a call's request."""

    PROVED = "proved"
    """Rebuilt, it has the recorded fingerprint, and no content of it was changed."""
    NOT_EQUAL = "not equal"
    """It was recorded with a fingerprint, but the rebuilt view has another."""
    RECONSTRUCTED = "reconstructed"
    """The request was not recorded; this is the view at the place of the call."""
    NOT_PROVABLE = "not provable"
    """The recorded coordinate does not exist."""


REFUTED_PROOFS = frozenset({RequestProof.NOT_EQUAL, RequestProof.NOT_PROVABLE})
"""The log contradicts the record of the call."""


@dataclass(frozen=True, slots=True)
class SentView:
    """What a call was sent, as far as the log shows."""

    proof: RequestProof
    why: str | None = None
    """The contradiction; None if there is none."""
    boundary: int | None = None
    blocks: int = 0
    tokens: int = 0
    """Estimated tokens of the view."""
    fingerprint: str | None = None

    @property
    def is_refuted(self) -> bool:
        return self.proof in REFUTED_PROOFS
