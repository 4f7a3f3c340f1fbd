"""Computes the fingerprint of what was sent from the digests of its parts, in order."""

from hashlib import blake2b

from .recorded_event import RecordedEvent
from .view_entry import ViewEntry


class Fingerprint:
    """The fingerprint of a view that may still grow, without reading earlier parts again."""

    def __init__(
        self,
        system: RecordedEvent | None,
        tools: RecordedEvent | None,
        settings: RecordedEvent | None,
        summary_digest: bytes,
    ) -> None:
        self._digest = blake2b(digest_size=16)
        for part in (system, tools, settings):
            self._digest.update(b"\x00" if part is None else b"\x01" + part.digest)
        self._digest.update(summary_digest)

    def add(self, entry: ViewEntry) -> None:
        self._digest.update(entry.digest)
        if entry.shown is not None:
            shown = blake2b(encode_text(entry.shown), digest_size=16).digest()
            self._digest.update(b"\x02" + shown)

    @property
    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def encode_text(text: str) -> bytes:
    """Return UTF-8 that includes lone surrogates, which models do write."""
    return text.encode("utf-8", "surrogatepass")
