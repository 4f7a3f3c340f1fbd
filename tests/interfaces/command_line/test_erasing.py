"""The verbs that let sessions go, and what they answer."""

import sys
from io import StringIO
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from cutbank.adapters.storage.databases.checked_cache import (
    BACKTEST_CACHE_FILE,
    SUMMARY_CACHE_FILE,
    CheckedCache,
    find_cache_file,
)

from .conftest import Run


def test_a_deleted_session_is_gone_and_its_name_is_free(run: Run) -> None:
    run("append", "s", "planted")

    answer = run("delete", "s", "--reason", "asked to", "--json")

    assert answer.json == {"session": "s", "namespace": "default", "deleted": True}
    assert run("sessions", "--json").json == []
    assert run("search", "planted").out.startswith("No block")
    assert run("show", "s").code == 2
    assert run("append", "s", "again", "--json").json["first"] == 3


def test_an_erasure_says_what_went_and_where_it_still_is(run: Run, tmp_path: Path) -> None:
    for key in ("s", "other"):
        run("append", key, f"planted in {key}")
    copy = tmp_path / "copy.db"
    run("backup", copy)

    answer = run("erase", "s", "--yes", "--by", "a person", "--json")

    assert answer.json["sessions"] == [{"namespace": "default", "session": "s"}]
    assert (answer.json["events"], answer.json["still_in"]) == (3, [str(copy)])
    assert b"planted in s" in copy.read_bytes()
    there = run("erase", "--in", copy, "s", "--yes", "--json")
    assert (there.code, there.json["events"], there.json["still_in"]) == (0, 3, [])
    for file in tmp_path.glob("*.db*"):
        assert b"planted in s" not in file.read_bytes()
    assert b"planted in other" in copy.read_bytes()
    assert run("verify").code == 0


def test_a_session_that_was_deleted_before_is_erased_by_its_name(run: Run) -> None:
    run("append", "s", "planted")
    run("delete", "s")

    assert run("erase", "s", "--yes", "--json").json["events"] == 3
    again = run("erase", "s", "--yes")
    assert (again.code, again.err.count("\n")) == (2, 1)


def test_nothing_is_erased_that_was_not_agreed_to(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("append", "s", "planted", "--key", "k")
    run("compact", "s", "--policy", "none")
    run("fork", "s", "f")
    what = "2 sessions to be erased: f, s; 4 events, "

    refused = run("erase", "s", "--forks", "--json")

    assert (refused.code, what in refused.json["error"]) == (1, True)
    assert (
        "bytes, and sources that nothing else needs: nothing was erased, --yes erases it"
        in (refused.json["error"])
    )
    for answer, erases in (("n", False), ("", False), ("y", True)):
        monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
        asked = run("erase", "s", "--forks", "--json")
        assert what in asked.err
        assert (asked.code, asked.json.get("events")) == ((0, 4) if erases else (1, None))
        assert len(run("sessions", "--json").json) == (0 if erases else 2)


class Terminal(StringIO):
    """What a user types."""

    def isatty(self) -> bool:
        return True


def test_a_fork_is_named_before_anything_goes(run: Run) -> None:
    run("append", "s", "planted")
    run("fork", "s", "f")

    refused = run("erase", "s", "--yes")

    assert refused.code == 1
    assert "the fork 'f' shares positions 1 to 3" in refused.err
    assert run("erase", "s", "--yes", "--forks", "--json").json["events"] == 4


def test_wrong_words_are_answered_in_one_line(run: Run) -> None:
    run("append", "s", "planted")
    for words in (
        ("erase",),
        ("erase", "s", "--subject", "default/s"),
        ("erase", "--subject", "no one"),
        ("erase", "missing"),
        ("delete", "missing"),
        ("erase", "--in", "missing.db", "s"),
    ):
        refused = run(*words)
        assert (refused.code > 0, refused.err.count("\n")) == (True, 1), words
    assert len(run("sessions", "--json").json) == 1


def test_retention_says_what_would_go(run: Run, tmp_path: Path) -> None:
    run("append", "s", "planted")
    settings = tmp_path / "settings.toml"
    settings.write_text('[retention]\nkeep = "180 days"\n', encoding="utf-8")

    answer = run("retention", "--dry-run", "--settings", settings, "--json")

    assert (answer.json["sessions"], answer.json["dry_run"]) == ([], True)
    assert run("retention", "--settings", settings).out == "nothing erased\n"


def test_the_caches_of_replays_and_backtests_are_emptied(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    files = [find_cache_file(name) for name in (SUMMARY_CACHE_FILE, BACKTEST_CACHE_FILE)]
    for file in files:
        with CheckedCache(file, TypeAdapter(str), "delete it") as cache:
            cache.put("key", "planted")
    run("append", "s", "planted")
    assert all(b"planted" in read_all(file) for file in files)

    assert run("erase", "s", "--yes").code == 0

    assert not any(b"planted" in read_all(file) for file in files)


def read_all(file: Path) -> bytes:
    """The bytes of a cache and of the files beside it."""
    return b"".join(one.read_bytes() for one in file.parent.glob(f"{file.name}*"))
