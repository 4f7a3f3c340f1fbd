"""Whatever is asked wrongly is answered in one line, with exit code 2 and no traceback."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from .conftest import Refusals, Run, answered_wrongly

WRONG: Refusals = [
    (["nonsense"], "no such command"),
    (["sesions"], "Did you mean 'sessions'"),
    (["--nonsense"], "no such option"),
    (["sessions", "--nonsense"], "no such option"),
    (["show"], "missing argument"),
    (["pin", "talk"], "missing argument"),
    (["fork", "talk"], "missing argument"),
    (["--db"], "requires an argument"),
    (["show", "unknown"], "talk"),
    (["view", "unknown"], "no session 'unknown'"),
    (["view", "talk", "--namespace", "elsewhere"], "no session 'talk'"),
    (["recall", "unknown", "3"], "no session 'unknown'"),
    (["pin", "unknown", "3"], "no session 'unknown'"),
    (["unpin", "unknown", "3"], "no session 'unknown'"),
    (["hide", "unknown", "3"], "no session 'unknown'"),
    (["retract", "unknown", "3"], "no session 'unknown'"),
    (["fork", "unknown", "new"], "no session 'unknown'"),
    (["compact", "unknown"], "no session 'unknown'"),
    (["revert", "unknown"], "no session 'unknown'"),
    (["verify", "unknown"], "no session 'unknown'"),
    (["append", "unknown", "hi", "--expect", "3"], "no session 'unknown'"),
    (["append", "", "hi"], "must have characters"),
    (["append", "talk"], "takes one of TEXT"),
    (["append", "talk", "hi", "--blocks", "x.json"], "takes one of TEXT"),
    (["append", "talk", "hi", "--role", "king"], "'king'"),
    (["append", "talk", "hi", "--expect", "x"], "not a handle"),
    (["append", "talk", "--blocks", "missing.json"], "missing.json cannot be read"),
    (["recall", "talk"], "nothing to recall"),
    (["recall", "talk", "x"], "'x' is not a handle"),
    (["recall", "talk", "9-3"], "write 3-9"),
    (["recall", "talk", "999"], "ends at #11"),
    (["recall", "talk", "1"], "not a block"),
    (["recall", "talk", "last-99"], "8 blocks"),
    (["search"], "missing argument"),
    (["search", "!?"], "nothing to search for"),
    (["search", '"never closed'], "a quote is never closed"),
    (["search", "x*"], "3 letters"),
    (["search", "words", "--session", "unknown"], "no session 'unknown'"),
    (["search", "words", "--limit", "0"], "--limit"),
    (["rebuild", "--db", "missing.db"], "missing.db does not exist"),
    (["show", "talk", "--from", "999"], "ends at #11"),
    (["show", "talk", "--to", "999"], "ends at #11"),
    (["show", "talk", "--from", "5", "--to", "4"], "#5 comes after #4"),
    (["show", "talk", "--lineage", "unknown"], "no lineage 'unknown'"),
    (["view", "talk", "--at", "999"], "no position 999"),
    (["view", "talk", "--lineage", "unknown"], "no lineage 'unknown'"),
    (["view", "talk", "--lineage-version", "7"], "no version 7"),
    (["view", "talk", "--lineage-version", "-1"], "--lineage-version"),
    (["view", "talk", "--lineage-version", "9" * 30], "--lineage-version"),
    (["view", "talk", "--as", "xml"], "neutral, anthropic"),
    (["fork", "talk", "new", "--at", "999"], "ends at #11"),
    (["retract", "talk", "999"], "ends at #11"),
    (["pin", "talk", "1"], "not a block"),
    (["compact", "talk", "--policy", "unknown"], "reserve-headroom"),
    (["compact", "talk", "--set", "keep_tokens"], "KEY=VALUE"),
    (["compact", "talk", "--set", "unknown=1"], "keep_tokens"),
    (["compact", "talk", "--set", "keep_tokens=many"], "whole number"),
    (["compact", "talk", "--limit", "0"], "--limit"),
    (["compact", "talk", "--limit", "many"], "--limit"),
    (["revert", "talk", "--lineage", "unknown"], "no lineage 'unknown'"),
    (["meter", "talk", "--lineage", "unknown"], "no lineage 'unknown'"),
    (["compact", "talk", "--lineage", ""], "'' cannot name a lineage: write printed"),
    (["compact", "talk", "--lineage", "a b#@"], "'a b#@' cannot name a lineage: write printed"),
    (["replay", "talk", "--policy", "pi", "--lineage", "a@b"], "'a@b' cannot name a lineage"),
    (["view", "talk", "--at", "talk#"], "'talk#' names no view: write [LINEAGE]"),
    (["import", "--jobs", "0"], "--jobs"),
    (["export", "talk"], "missing option"),
    (["export", "talk", "--to", "nonsense", "--out", "x"], "is not known: choose one of"),
    (["export", "unknown", "--to", "codex", "--out", "x"], "no session 'unknown'"),
    (["import", "missing"], "missing does not exist"),
    (["demo", "missing"], "missing does not exist"),
    (["backup"], "missing argument"),
    (["backup", "missing/copy.db"], "cannot be opened"),
    (["sessions", "--db", ""], "--db needs a path"),
    (["sessions", "--db", "missing.db"], "missing.db does not exist"),
    (["append", "s", "hi", "--db", "missing/new.db"], "cannot be opened"),
    (["append", "s", "hi", "--db", "."], "is a folder"),
    (["diff", "long"], "nothing was compacted"),
    (["diff", "long", "7"], "no compaction 7"),
    (["diff", "long", "--from", "nobody"], "no lineage 'nobody'"),
    (["diff", "long", "--from", "main#999"], "no position 999"),
    (["diff", "long", "--from", "main@99"], "no version 99"),
    (["diff", "nobody"], "no session 'nobody'"),
    (["lineage", "long", "--lineage", "nobody"], "no lineage 'nobody'"),
    (["replay", "long", "--policy", "pi", "--lineage", "main"], "main is what agents are served"),
    (["replay", "long", "--policy", "pi", "--lineage", "recorded"], "recorded is what happened"),
    (["replay", "long", "--policy", "nobody"], "nobody"),
    (["replay", "long", "--policy", "pi", "--set", "keep_tokens"], "KEY=VALUE"),
    (["replay", "long", "--policy", "pi", "--summarizer", "poet"], "poet"),
    (["replay", "long", "--policy", "pi", "--summarizer", "llm"], "summary.model"),
    (["compact", "long", "--policy", "basalt"], "no policy 'basalt'; there is rolling-timeline ("),
    (["compact", "long", "--policy", "tunacode@basalt"], "no preset @basalt; it has @as_shipped"),
    (["compact", "long", "--policy", "@later"], "there is no policy ''"),
    (["overflowed", "long", "rate limit exceeded: 429"], "request was too long: rate limit"),
    (["record-call", "long", "--at", "2", "--lineage-version", "0", "--as", "x"], "no format 'x'"),
    (["wake", "talk"], "wake takes one of --at TIME, --in SPAN and --cancel"),
    (["wake", "talk", "--in", "5m", "--cancel"], "wake takes one of"),
    (["wake", "talk", "--in", "soon"], "--in takes a span as 90s, 20m, 2h or 1d, not 'soon'"),
    (["wake", "talk", "--at", "noon"], "--at takes a date and a time as 2026-01-31T09:00, not"),
    (["wake", "talk", "--at", "2001-01-01T00:00+00:00"], "is past"),
    (["wake", "talk", "--in", "0s"], "is past"),
    (["wake", "talk", "--in", "9999999d"], "is further away than a calendar goes"),
]


def test_wrong_usage_is_answered_in_one_line(
    run: Run, talk: Path, long_talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(talk.parent)
    before = run("sessions", "--json").json

    assert not answered_wrongly(run, WRONG)
    assert run("sessions", "--json").json == before
    # `--db` at the very end would take the next word for its path.
    in_json = {said: run(*words, "--json") for words, said in WRONG[::7] if words[-1] != "--db"}
    assert not [said for said, one in in_json.items() if said not in one.json["error"]]


BLOCKS = [
    ("\xff\xfe\x00", "not UTF-8"),
    ("", "is not JSON"),
    ("{}", "a JSON list"),
    ("[]", "at least one"),
    ("[3]", "block 1 must be a JSON object"),
    ("[" * 100_000, "nested too deeply"),
    ('[{"text": "x"}]', "block 1: kind"),
    ('[{"kind": "song", "text": "x"}]', "block 1: kind"),
    ('[{"kind": "user", "text": "x"}, {"kind": "tool_call"}]', "block 2: tool_call_id"),
    ('[{"kind": "user", "txt": "x"}]', "Block has no field 'txt'"),
    ('[{"kind": "tool_result", "tool_call_id": "x"}]', "no open tool call 'x'"),
    ('[{"kind": "tool_call", "tool_call_id": "c2", "name": "n"}]', "already open"),
]


def test_a_wrong_list_of_blocks_says_which_block_is_wrong(
    run: Run, talk: Path, tmp_path: Path
) -> None:
    file = tmp_path / "blocks.json"
    wrong = []
    for text, said in BLOCKS:
        file.write_bytes(text.encode("latin-1"))
        wrong += answered_wrongly(run, [(["--blocks", str(file)], said)], "append", "talk")

    assert not wrong


def test_what_is_no_database_of_ours_is_refused(run: Run, talk: Path, tmp_path: Path) -> None:
    letter, other = tmp_path / "letter.txt", tmp_path / "other.db"
    letter.write_text("Dear river, " * 100, encoding="utf-8")
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE songs (name TEXT)")
    with closing(sqlite3.connect(talk)) as connection, connection:
        connection.execute("PRAGMA user_version = 1000")

    wrong: Refusals = [
        (["sessions", "--db", str(letter)], "is not a database"),
        (["append", "s", "hi", "--db", str(other)], "another application"),
        (["sessions"], "newer cutbank"),
    ]
    assert not answered_wrongly(run, wrong)


def test_a_damaged_database_is_refused(run: Run, talk: Path) -> None:
    with talk.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (talk.stat().st_size - 4096))

    assert not answered_wrongly(run, [(["show", "talk"], "damaged")])


def test_what_cannot_be_written_can_still_be_read(run: Run, talk: Path) -> None:
    read_only = f"{talk.as_uri()}?mode=ro"

    assert run("sessions", "--db", read_only, "--json").json[0]["session"] == "talk"
    wrong: Refusals = [(["append", "talk", "hi", "--db", read_only], "read-only")]
    assert not answered_wrongly(run, wrong)
