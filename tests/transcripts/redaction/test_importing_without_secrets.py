"""Of a transcript that is imported with `redact` no secret reaches the disk or the terminal."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from claude_code_talk import Talk
from planted import SECRETS, in_words, plant_in_lines, planted, sought
from transcripts import import_path, samples

import cutbank
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.storage.event_log.event_mapper import ZstdCompressor

ZSTANDARD = b"\x28\xb5\x2f\xfd"


def everything_in(path: Path) -> Iterator[bytes]:
    """Each file of a database as it lies there, and what is compressed in it."""
    for file in path.parent.glob(f"{path.name}*"):
        yield file.read_bytes()
    connection = sqlite3.connect(path)
    for table, column in (("stored_events", "state"), ("bodies", "content")):
        for (value,) in connection.execute(f"SELECT {column} FROM {table}"):  # noqa: S608
            raw = bytes(value)
            yield ZstdCompressor().decompress(raw) if raw.startswith(ZSTANDARD) else raw
    connection.close()


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_no_secret_in_any_format_is_stored_or_said(
    step: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Secrets of a fifth of the kinds, and one of many lines, are in every place of a sample."""
    for number, path in enumerate(samples()[::step]):
        kinds = {"Groq Key", "Private Key", *list(SECRETS)[number % 5 :: 5]}
        parts = [part for kind in kinds for part in sought(kind)]
        folder = tmp_path / str(number)
        folder.mkdir()
        name = path.name if path.is_dir() else f"{SECRETS['Groq Key']} {path.name}"
        copy = folder / name
        plant(path, copy, " and ".join(map(in_words, kinds)))
        database = folder / "sessions.db"

        with cutbank.open(database, compress=bool(number % 2)) as store:
            (report,) = import_path(store, copy, redact=True)
            titles = [one.info.title or "" for one in store.sessions()]
            assert verify(store).is_ok

        assert report.redacted.keys() == kinds, path
        said = "".join([repr(report), *titles, *capsys.readouterr()]).encode()
        held = [said, *everything_in(database)]
        assert not [part for part in parts for one in held if part in one]


def plant(path: Path, copy: Path, words: str) -> None:
    """Copy a sample with the words in every text of it."""
    if path.is_dir():
        for file in path.rglob("*.json"):
            (copy / file.relative_to(path)).parent.mkdir(parents=True, exist_ok=True)
            plant(file, copy / file.relative_to(path), words)
        return
    raw = path.read_text(encoding="utf-8", errors="replace")
    match path.suffix:
        case ".jsonl":
            copy.write_text(plant_in_lines(raw, words), encoding="utf-8")
        case ".md":
            copy.write_text(raw.replace("\n\n", f"\n\n{words}\n\n"), encoding="utf-8")
        case _:
            copy.write_text(json.dumps(planted(json.loads(raw), words)), encoding="utf-8")


def test_importing_again_adds_nothing_with_redaction_or_without(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    plant(next(one for one in samples() if one.suffix == ".jsonl"), path, in_words("Groq Key"))

    with cutbank.open(tmp_path / "sessions.db") as store:
        (first,) = import_path(store, path, redact=True)
        (again,) = import_path(store, path, redact=True)
        (without,) = import_path(store, path)

    assert first.added > 0
    assert (again.added, without.added) == (0, 0)
    assert again.redacted == first.redacted
    assert without.redacted == {}


def test_the_report_says_what_was_left_out_and_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    one = Talk()
    one.user("Nothing here.")
    one.user(f"Take {SECRETS['Groq Key']} and {SECRETS['NPM Token']}.")
    path.write_bytes(one.raw())
    words = ["import", str(path), "--db", str(tmp_path / "x.db"), "--redact", "--report"]

    with pytest.raises(SystemExit) as ended:
        main(words)

    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "2 secrets left out" in said
    assert f"secret\tGroq Key at {path}:2\t1" in said
    assert f"secret\tNPM Token at {path}:2\t1" in said


def test_several_processes_leave_them_out_as_well(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        one = Talk()
        one.user(f"Take {SECRETS['Groq Key']}.", sessionId=f"s-{number}")
        (folder / f"{number}.jsonl").write_bytes(one.raw())
    database = tmp_path / "sessions.db"

    with cutbank.open(database) as store:
        reports = list(import_path(store, folder, redact=True, jobs=2))

    assert [list(one.redacted) for one in reports] == [["Groq Key"]] * 3
    assert not any(SECRETS["Groq Key"].encode() in stored for stored in everything_in(database))


def test_without_the_extra_it_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cutbank.adapters.transcripts.redaction import secret_kinds  # noqa: PLC0415 - its cache is emptied

    secret_kinds.list_secret_kinds.cache_clear()
    monkeypatch.setitem(sys.modules, "detect_secrets.plugins.aws", None)
    path = tmp_path / "a.jsonl"
    path.touch()

    with pytest.raises(SystemExit) as ended:
        main(["import", str(path), "--db", str(tmp_path / "x.db"), "--redact"])

    assert ended.value.code == 2
    assert capsys.readouterr().err.strip() == (
        "cutbank: --redact needs one thing more: pip install 'cutbank[redact]'"
    )
    assert not (tmp_path / "x.db").exists()
    secret_kinds.list_secret_kinds.cache_clear()
