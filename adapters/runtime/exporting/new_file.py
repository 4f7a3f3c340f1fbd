"""Writes a new file or folder beside its name first: half a file never passes for a whole one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from ....domain.errors import ExportError


@contextmanager
def open_new_path(target: Path) -> Iterator[Path]:
    """A path to write to; it becomes `target` when the block is left, and goes if that fails.

    Raises ExportError where the target is there already or cannot be written.
    """
    if target.exists():
        raise ExportError(f"{target} is there already: name a new one")
    if not target.parent.is_dir():
        raise ExportError(f"{target.parent} is no folder: make it first")
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
