"""No file, whatever its bytes, ends a reading otherwise than entry by entry, to its end."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import mutated_copy
from reading_rules import check_imported, check_keys, check_read, check_told, in_time
from transcripts import NO_SESSIONS, SESSIONS, name_of, real, samples

from cutbank.adapters.transcripts.formats.catalog import recognise
from cutbank.adapters.transcripts.formats.json_lines import LONGEST
from cutbank.adapters.transcripts.formats.source import Source

ALL = [pytest.param(path, id=name_of(path)) for path in samples()]
REAL = [pytest.param(path, id=name_of(path)) for path in real()]
SHORT = 1_500
"""Bytes of the longest line, in some readings: most files have lines that are longer."""
MOST_CUTS = 150
"""A file of more lines is not cut at each of them."""
many = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)


@contextmanager
def no_collection() -> Iterator[None]:
    """What is cleared away at the bottom of a deep value fails there, whoever's it was."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def check(path: Path, folder: Path, choose: Random, *, whole: bool) -> None:
    """Make the transcript wrong, and read it as what it was and as what it is told to be."""
    found = recognise(Source(path))
    assert found
    with no_collection():
        wrong = mutated_copy(path, folder, choose)
    longest = choose.choice((LONGEST, LONGEST, SHORT))

    with in_time(), no_collection():
        told = check_told(wrong, longest)
        # A file that grows stays what it was told to be; a document is read once it was told.
        for one in {
            it.name: it for it in (found, told) if it and (it.begin or it is told)
        }.values():
            check_read(one, wrong, longest)
        if whole:
            check_imported(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("path", ALL)
@settings(many, max_examples=30)
@given(choose=st.randoms(use_true_random=False))
def test_a_wrong_sample_is_read_to_its_end(path: Path, tmp_path: Path, choose: Random) -> None:
    check(path, tmp_path, choose, whole=choose.random() < 0.1)


@pytest.mark.parametrize("path", ALL)
@settings(many, max_examples=5)
@given(choose=st.randoms(use_true_random=False))
def test_a_wrong_sample_is_imported_and_verified(
    path: Path, tmp_path: Path, choose: Random
) -> None:
    check(path, tmp_path, choose, whole=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", ALL)
def test_a_sample_is_read_wherever_it_is_cut(path: Path, tmp_path: Path) -> None:
    if path.is_dir():
        pytest.skip("a folder is cut by leaving files out, as the other tests do")
    found = recognise(Source(path))
    assert found
    raw = path.read_bytes()
    lines = [at + 1 for at, byte in enumerate(raw) if byte == 10]
    step = max(1, len(raw) // 100)
    cuts = sorted({0, *lines, *(at - 1 for at in lines), *range(0, len(raw), step)})
    for at in cuts[:: 1 + len(cuts) // MOST_CUTS]:
        cut = tmp_path / path.name
        cut.write_bytes(raw[:at])

        check_told(cut)
        check_read(found, cut)


@pytest.mark.parametrize("path", [*ALL, *REAL])
def test_no_two_appends_have_one_name(path: Path) -> None:
    found = recognise(Source(path))
    assert found

    check_keys(check_read(found, path))


@pytest.mark.slow
@pytest.mark.skipif(not SESSIONS, reason=NO_SESSIONS)
@pytest.mark.parametrize("path", REAL)
@settings(many, max_examples=20)
@given(choose=st.randoms(use_true_random=False))
def test_a_wrong_real_transcript_is_read_to_its_end(
    path: Path, tmp_path: Path, choose: Random
) -> None:
    check(path, tmp_path, choose, whole=choose.random() < 0.15)
