"""Writes the long sample session that cutbank ships: an invented Claude Code transcript.

`scripts/make_sample.py` made the compressed file.
"""

from pathlib import Path

import zstandard

SAMPLE_FILE = Path(__file__).with_name("sample.jsonl.zst")


def write_sample(path: Path) -> None:
    """Write the session to `path`; the bytes are always the same."""
    path.write_bytes(zstandard.decompress(SAMPLE_FILE.read_bytes()))
