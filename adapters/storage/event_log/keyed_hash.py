"""Computes keyed hashes: an event's digest, a body's address."""

from hashlib import blake2b, sha256

DIGEST_SIZE = 16
ADDRESS_SIZE = 20


def compute_keyed_hash(content: bytes, secret: bytes, size: int = DIGEST_SIZE) -> bytes:
    """Return a hash that reveals nothing about the content without the subject's secret.

    SHA-256 is fast in hardware, and an append waits for it. Truncated to `size` bytes, it is safe
    from length extension.
    """
    return sha256(secret + content).digest()[:size]


def matches_keyed_hash(found: bytes, content: bytes, secret: bytes) -> bool:
    """Return whether `found` is the content's hash, by this version or an earlier one."""
    if found == compute_keyed_hash(content, secret, len(found)):
        return True
    return found == blake2b(content, key=secret, digest_size=len(found)).digest()
