"""The command line serves either database by its address."""

from pathlib import Path

import pytest

from cutbank.adapters.interfaces.command_line.cli import main


def test_a_verb_that_reads_makes_no_database_and_one_that_writes_does(
    database: str,
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in (("CUTBANK_DB", database), ("XDG_DATA_HOME", tmp_path), ("HOME", tmp_path)):
        monkeypatch.setenv(name, str(value))
    missing = {"sqlite": "does not exist: `import`", "postgres": "holds no sessions: `import`"}

    for line, fails, words in (
        ("sessions", True, missing[engine]),
        ("sessions", True, missing[engine]),  # the first has made nothing
        ("append session pebble", False, ""),
        ("sessions", False, "session"),
        ("search pebble", False, "session"),
        ("verify", False, ""),
    ):
        with pytest.raises(SystemExit) as exited:
            main(line.split())
        said = "".join(capsys.readouterr())
        assert (bool(exited.value.code), words in said) == (fails, True), said
