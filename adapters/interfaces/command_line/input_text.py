"""Text that a verb is given in a file, or that is piped in."""

import sys
from pathlib import Path

from ....domain.errors import InvalidSettingError

STDIN_WORD = "-"
"""Stands for standard input where a text or a file is asked for."""


def read_input_text(path: str) -> str:
    """What a file holds, or what is piped in: UTF-8, whatever the locale says."""
    where = "standard input" if path == STDIN_WORD else path
    try:
        content = sys.stdin.buffer.read() if path == STDIN_WORD else Path(path).read_bytes()
    except OSError as error:
        raise InvalidSettingError(f"{where} cannot be read: {error.strerror or error}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSettingError(f"{where} is not UTF-8: see byte {error.start:,}") from None
