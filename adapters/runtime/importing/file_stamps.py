"""Makes stamps of transcript files, so that the next import can detect changes."""

from hashlib import blake2b
from pathlib import Path

READER_VERSION = 1
"""To be raised when a reader takes more from the same file than before."""


def make_file_stamp(path: Path, *, redacts: bool) -> str:
    """Return a hash of a file's size, modification time and inode, or of all files of a folder.

    Raises OSError if it cannot be read.
    """
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    digest = blake2b(digest_size=16)
    for file in files:
        status = file.stat()
        # Without the absolute path, which is stored separately and can be spelled in many ways.
        told = (str(file.relative_to(path)), status.st_size, status.st_mtime_ns, status.st_ino)
        digest.update(repr(told).encode("utf-8", "surrogatepass"))
    # A first import with redaction must not count as done.
    return f"{READER_VERSION}{'r' if redacts else ''}:{digest.hexdigest()}"
