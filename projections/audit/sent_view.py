"""Whether a model was shown what its call says: the verdict on one call, and what speaks for it."""

from dataclasses import dataclass
from enum import StrEnum


class RequestProof(StrEnum):
    """What is known of the request of a call."""

    PROVED = "proved"
    """Rebuilt, it has the fingerprint that was recorded, and no content of it was changed."""
    NOT_EQUAL = "not equal"
    """It was recorded with a fingerprint, and cannot be rebuilt so that it has it."""
    RECONSTRUCTED = "reconstructed"
    """It was not recorded what was sent; this is the view at the place of the call."""
    NOT_PROVABLE = "not provable"
    """What the call says it saw does not exist."""


REFUTED_PROOFS = frozenset({RequestProof.NOT_EQUAL, RequestProof.NOT_PROVABLE})
"""Where the log contradicts what was recorded of a call."""


@dataclass(frozen=True, slots=True)
class SentView:
    """What a call was sent, as far as the log can tell."""

    proof: RequestProof
    why: str | None = None
    """What speaks against it; None where nothing does."""
    boundary: int | None = None
    """The boundary that the view begins at."""
    blocks: int = 0
    tokens: int = 0
    """Estimated tokens of the view."""
    fingerprint: str | None = None
    """That of the rebuilt view."""

    @property
    def is_refuted(self) -> bool:
        """Whether the log contradicts what was recorded."""
        return self.proof in REFUTED_PROOFS
