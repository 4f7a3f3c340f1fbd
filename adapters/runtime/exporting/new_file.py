"""Writes a file or folder under a temporary name, so that no partial export looks complete."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from ....domain.errors import ExportError


@contextmanager
def open_new_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed to `target` at the end, or removed on failure.

    Raises ExportError if the target exists or cannot be written.
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
