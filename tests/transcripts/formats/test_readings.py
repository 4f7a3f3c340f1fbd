"""Samples and cases are read as when their golden files were written: texts, ids, usage and keys.

Each case is a small transcript, named after its rule. `tests/support/readings.py` writes the files.
"""

import pytest
from readings import FOLDER, formats, readings


@pytest.mark.parametrize("name", formats())
def test_a_transcript_is_read_as_before(name: str) -> None:
    assert readings(name) == (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
