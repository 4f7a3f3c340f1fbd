"""Creates files and folders that only their owner may read, as they hold users' content."""

import os
from contextlib import suppress
from pathlib import Path
from stat import S_IRGRP, S_IROTH, S_ISREG
from typing import BinaryIO


def open_new(path: Path) -> BinaryIO:
    """Open a new file for writing; raise FileExistsError if a file or link is already there."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def make_file(path: Path) -> None:
    """Make an empty file if there is none; SQLite gives its mode to the files next to it."""
    with suppress(FileExistsError):
        open_new(path).close()


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents."""
    if not folder.is_dir():
        if folder.parent != folder:
            make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def is_shared(path: Path) -> bool:
    """Return whether users other than the owner may read the file."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return os.name == "posix" and S_ISREG(mode) and bool(mode & (S_IRGRP | S_IROTH))
