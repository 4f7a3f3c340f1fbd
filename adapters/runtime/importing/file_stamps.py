"""What a transcript on the disk is like, for the next import to tell whether it has changed."""

from hashlib import blake2b
from pathlib import Path

READER_VERSION = 1
"""One more where a reader takes from the same file what none took before."""


def make_file_stamp(path: Path, *, redacts: bool) -> str:
    """Size, time of change and inode of a file, or of all files of a folder.

    Raises OSError where it cannot be read.
    """
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    digest = blake2b(digest_size=16)
    for file in files:
        status = file.stat()
        # Where it lies is known beside it, and whoever names it may do so in many ways.
        told = (str(file.relative_to(path)), status.st_size, status.st_mtime_ns, status.st_ino)
        digest.update(repr(told).encode("utf-8", "surrogatepass"))
    # Whoever asks for redaction from now on is not told that all is done already.
    return f"{READER_VERSION}{'r' if redacts else ''}:{digest.hexdigest()}"
