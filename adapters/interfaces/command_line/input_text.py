"""Reads text that a verb takes from a file or standard input."""

import sys
from pathlib import Path

from ....domain.errors import InvalidSettingError

STDIN_WORD = "-"
"""Names standard input in place of a text or a file."""


def read_input_text(path: str) -> str:
    """Read a file or standard input as UTF-8, whatever the locale."""
    where = "standard input" if path == STDIN_WORD else path
    try:
        content = sys.stdin.buffer.read() if path == STDIN_WORD else Path(path).read_bytes()
    except OSError as error:
        raise InvalidSettingError(f"{where} cannot be read: {error.strerror or error}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSettingError(f"{where} is not UTF-8: see byte {error.start:,}") from None
