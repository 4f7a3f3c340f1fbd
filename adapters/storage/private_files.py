"""Creates files and folders that only their owner may read, each whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from stat import S_IRGRP, S_IROTH, S_ISREG
from typing import BinaryIO

from ...domain.errors import ExportError


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


@contextmanager
def open_new_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed to `target` at the end, or removed on failure.

    So no partial export looks complete. Raises ExportError if the target exists or cannot be
    written.
    """
    if target.exists():
        raise ExportError(f"{target} is there already: name a new one")
    if not target.parent.is_dir():
        raise ExportError(f"{target.parent} is not a folder: make it first")
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield beside
        beside.rename(target)
    except OSError as error:
        raise ExportError(f"{target}: cannot be written: {error.strerror or error}") from None
    finally:
        if beside.is_dir():
            rmtree(beside)
        else:
            beside.unlink(missing_ok=True)
