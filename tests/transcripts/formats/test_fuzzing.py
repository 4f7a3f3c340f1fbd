"""No file, whatever its bytes, ends a reading otherwise than entry by entry, to its end."""

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import mutated_copy
from reading_rules import check_imported, check_read, check_told, in_time
from transcripts import name_of, real, samples
from wrong_types import mutants

from cutbank.adapters.transcripts.formats.catalog import FORMATS, recognize_format
from cutbank.adapters.transcripts.formats.format import Format
from cutbank.adapters.transcripts.formats.json_lines import MAX_LINE_BYTES
from cutbank.adapters.transcripts.formats.source import TranscriptSource

SCRIPT = Path(__file__).parents[3] / "scripts" / "fuzz.py"
FILES = [path for path in samples() if path.is_file()]
SHORT = 1_500
"""Bytes of the longest line, in some readings: most files have lines that are longer."""
MOST_CUTS = 150
"""A file of more lines is not cut at each of them."""
many = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
choices = st.randoms(use_true_random=False)


@contextmanager
def no_collection() -> Iterator[None]:
    """What is cleared away at the bottom of a deep value fails there, whoever's it was."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def check(path: Path, choose: Random, *, whole: bool) -> None:
    """Make the transcript wrong, and read it as what it was and as what it is told to be."""
    found = format_of(path)
    with TemporaryDirectory() as folder:
        with no_collection():
            wrong = mutated_copy(path, Path(folder), choose)
        longest = choose.choice((MAX_LINE_BYTES, MAX_LINE_BYTES, SHORT))
        with in_time(), no_collection():
            told = check_told(wrong, longest)
            # A file that grows stays what it was told to be; a document is read once it was told.
            for one in {
                it.name: it for it in (found, told) if it and (it.begin_reading or it is told)
            }.values():
                check_read(one, wrong, longest)
            if whole:
                check_imported(wrong)


def format_of(path: Path) -> Format:
    found = recognize_format(TranscriptSource(path))
    assert found
    return found


@settings(many, max_examples=100)
@given(path=st.sampled_from(samples()), choose=choices)
def test_a_wrong_sample_is_imported_and_verified(path: Path, choose: Random) -> None:
    check(path, choose, whole=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [pytest.param(path, id=name_of(path)) for path in [*samples(), *real()]]
)
@settings(many, max_examples=20)
@given(choose=choices)
def test_a_wrong_transcript_is_read_to_its_end(path: Path, choose: Random) -> None:
    check(path, choose, whole=choose.random() < 0.15)


@pytest.mark.parametrize("most", [10, pytest.param(MOST_CUTS, marks=pytest.mark.slow)])
def test_a_sample_is_read_wherever_it_is_cut(most: int, tmp_path: Path) -> None:
    for path in FILES:
        found, raw, cut = format_of(path), path.read_bytes(), tmp_path / path.name
        lines = [at + 1 for at, byte in enumerate(raw) if byte == 10]
        step = max(1, len(raw) // 100)
        cuts = sorted({0, *lines, *(at - 1 for at in lines), *range(0, len(raw), step)})
        for at in cuts[:: 1 + len(cuts) // most]:
            cut.write_bytes(raw[:at])
            check_told(cut)
            check_read(found, cut)


@pytest.mark.parametrize("step", [211, pytest.param(4, marks=pytest.mark.slow)])
def test_a_value_of_a_wrong_type_in_any_field_spoils_no_other_entry(
    step: int, tmp_path: Path
) -> None:
    for path in FILES:
        found, wrong = format_of(path), tmp_path / path.name
        for changed in spoilt(path, step, is_lines=found.begin_reading is not None):
            wrong.write_text(changed, encoding="utf-8")
            check_read(found, wrong)  # of lines, it ends an entry at each


def spoilt(path: Path, step: int, *, is_lines: bool) -> Iterator[str]:
    """Each of so many copies of a file, wrong at one place; of lines some of those around it."""
    try:
        raw = path.read_text("utf-8")
        values = [json.loads(line) for line in raw.splitlines()] if is_lines else [json.loads(raw)]
    except ValueError:
        return
    wrong = ((at, mutant) for at, value in enumerate(values) for mutant in mutants(value))
    for at, mutant in islice(wrong, 0, None, step):
        before = [values[0], *values[max(1, at - 3) : at]] if at else []
        yield "\n".join(map(json.dumps, [*before, mutant, *values[at + 1 : at + 2]]))


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("atheris"), reason="there is no atheris for this machine")
@pytest.mark.parametrize("name", FORMATS)
def test_the_fuzzer_finds_nothing(name: str, tmp_path: Path) -> None:
    words = [name, "--minutes", "0.03", "--seed", "1", "--findings", str(tmp_path / "found")]
    done = subprocess.run(
        [sys.executable, SCRIPT, *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-2_000:]
    assert "Done" in done.stdout
