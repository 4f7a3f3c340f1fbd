"""Keyed hashes of what is stored: an event's digest, a body's address."""

from hashlib import blake2b, sha256

DIGEST_SIZE = 16
ADDRESS_SIZE = 20


def compute_keyed_hash(content: bytes, secret: bytes, size: int = DIGEST_SIZE) -> bytes:
    """A hash that tells nothing of the content to whoever lacks the subject's secret.

    Processors have instructions for SHA-256, and an append waits for it. Cut to `size` bytes, it
    cannot be extended.
    """
    return sha256(secret + content).digest()[:size]


def matches_keyed_hash(found: bytes, content: bytes, secret: bytes) -> bool:
    """Whether `found` is that content's hash, written by this version or an earlier one."""
    if found == compute_keyed_hash(content, secret, len(found)):
        return True
    return found == blake2b(content, key=secret, digest_size=len(found)).digest()
