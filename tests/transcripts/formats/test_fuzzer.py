"""The rules of every reading see what breaks them, and the fuzzer finds nothing that does."""

import subprocess
import sys
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from mutations import mutated
from reading_rules import check_keys, check_read, check_told
from transcripts import samples

from cutbank import Block
from cutbank.adapters.transcripts.formats.catalog import FORMATS, recognize_format
from cutbank.adapters.transcripts.formats.format import Format
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import (
    Append,
    EntryEnd,
    ImportStep,
    SessionStart,
    SourceProblem,
)

SCRIPT = Path(__file__).parents[3] / "scripts" / "fuzz.py"
SECONDS = 10
SAMPLED = sorted(
    {one.name for path in samples() if (one := recognize_format(TranscriptSource(path)))}
)


PROBLEM = SourceProblem(1, "why")


@pytest.mark.parametrize(
    "steps",
    [
        [EntryEnd("skipped", 3), PROBLEM, EntryEnd("error", 6)],  # and does not say why
        [EntryEnd("lost", 3), EntryEnd("imported", 6)],
        [Append("a", Block.user("words")), EntryEnd("imported", 3), EntryEnd("imported", 6)],
        [EntryEnd("imported", 6)],  # a line was passed over
    ],
)
def test_a_broken_rule_is_seen(tmp_path: Path, steps: list[ImportStep]) -> None:
    path = tmp_path / "any.jsonl"
    path.write_bytes(b"{}\n{}\n")
    reads: list[ImportStep] = [
        PROBLEM,
        EntryEnd("error", 3),
        SessionStart("a"),
        EntryEnd("imported", 6),
    ]

    check_read(made_up(reads), path)
    with pytest.raises(AssertionError):
        check_read(made_up(steps), path)


def made_up(steps: list[ImportStep]) -> Format:
    """A format that reads these steps, and has a reader of lines."""
    return Format(
        "made up",
        "",
        lambda _: True,
        lambda _: iter(steps),
        begin_reading=cast(Any, lambda _: None),
    )


def test_a_reading_without_an_end_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "any.jsonl"
    path.write_bytes(b"{}\n")

    with pytest.raises(AssertionError, match="goes on"):
        check_read(Format("made up", "", lambda _: True, lambda _: repeat(PROBLEM)), path)


def test_two_appends_of_one_name_are_seen() -> None:
    twice = Append("a", Block.user("words"))

    check_keys([SessionStart("one"), twice, SessionStart("two"), twice])
    with pytest.raises(AssertionError):
        check_keys([SessionStart("one"), twice, twice])


def test_most_wrong_transcripts_are_still_told_and_read(tmp_path: Path) -> None:
    """Else nothing but the first look at a file would be tried."""
    choose = Random(1)  # noqa: S311 - to choose, and not to hide
    told = tried = 0
    for path in [path for path in samples() if path.is_file()]:
        raw = path.read_bytes()
        for _ in range(5):
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
