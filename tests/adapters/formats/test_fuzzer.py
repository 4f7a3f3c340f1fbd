"""The rules of every reading see what breaks them, and the fuzzer finds nothing that does."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest
from mutations import mutated
from reading_rules import check_keys, check_read, check_told
from transcripts import samples

from cutbank import Block
from cutbank.adapters.transcripts.formats.catalog import FORMATS, recognise
from cutbank.adapters.transcripts.formats.format import Format
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import Append, Begin, EntryRead, Skipped, Step

SCRIPT = Path(__file__).parents[3] / "scripts" / "fuzz.py"
SECONDS = 10
SAMPLED = sorted({one.name for path in samples() if (one := recognise(Source(path)))})


def reading(steps: Callable[[Source], Iterator[Step]]) -> Format:
    return Format("made up", "nothing", lambda _: True, steps)


def skipping_without_a_word(_: Source) -> Iterator[Step]:
    yield EntryRead("skipped", 1)


def ending_in_another_way(_: Source) -> Iterator[Step]:
    yield EntryRead("lost", 1)


def never_ending(_: Source) -> Iterator[Step]:
    while True:
        yield Skipped("a", "b")


def blocks_of_nobody(_: Source) -> Iterator[Step]:
    yield Append("a", Block.user("words"))


def failing(_: Source) -> Iterator[Step]:
    yield Begin("a")
    raise KeyError("type")


@pytest.mark.parametrize(
    "broken",
    [skipping_without_a_word, ending_in_another_way, never_ending, blocks_of_nobody, failing],
)
def test_a_broken_rule_is_seen(tmp_path: Path, broken: Callable[[Source], Iterator[Step]]) -> None:
    path = tmp_path / "any.jsonl"
    path.write_bytes(b"{}\n")

    with pytest.raises((AssertionError, KeyError)):
        check_read(reading(broken), path)


def test_a_line_that_is_passed_over_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "any.jsonl"
    path.write_bytes(b"{}\n{}\n")

    def passing_over(_: Source) -> Iterator[Step]:
        yield EntryRead("imported", 3)

    made = Format("made up", "nothing", lambda _: True, passing_over, begin=lambda _: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(AssertionError):
        check_read(made, path)


def test_two_appends_of_one_name_are_seen() -> None:
    twice = Append("a", Block.user("words"))

    check_keys([Begin("one"), twice, Begin("two"), twice])
    with pytest.raises(AssertionError):
        check_keys([Begin("one"), twice, twice])


def test_most_wrong_transcripts_are_still_told_and_read(tmp_path: Path) -> None:
    """Else nothing but the first look at a file would be tried."""
    choose = Random(1)  # noqa: S311 - to choose, and not to hide
    told = tried = 0
    for path in [path for path in samples() if path.is_file()]:
        raw = path.read_bytes()
        for _ in range(20):
            wrong = tmp_path / path.name
            wrong.write_bytes(mutated(raw, choose))
            tried += 1
            told += check_told(wrong) is not None

    assert told > tried / 2


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("atheris"), reason="there is no atheris for this machine")
@pytest.mark.parametrize("name", FORMATS)
def test_the_fuzzer_finds_nothing(name: str, tmp_path: Path) -> None:
    if name not in SAMPLED:
        pytest.fail(f"{name} has no sample for a fuzzer to begin with")
    minutes = str(SECONDS / 60)

    done = subprocess.run(
        [sys.executable, SCRIPT, name, "--minutes", minutes, "--findings", tmp_path / "found"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-2_000:]
    assert "Done" in done.stdout
