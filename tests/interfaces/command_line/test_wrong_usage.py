"""Whatever is asked wrongly is answered in one line, with exit code 2 and no traceback."""

import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from .conftest import Refusals, Run, answered_wrongly

WRONG = {
    "no such command": "nonsense",
    "Did you mean 'sessions'": "sesions",
    "no such option": "--nonsense; sessions --nonsense",
    "missing argument": "show; pin talk; fork talk; search; backup",
    "missing option": "export talk",
    "requires an argument": "--db",
    "no session 'unknown'": "show unknown; view unknown; recall unknown 3; pin unknown 3;"
    " unpin unknown 3; hide unknown 3; retract unknown 3; fork unknown new; compact unknown;"
    " revert unknown; verify unknown; append unknown hi --expect 3; diff unknown;"
    " search words --session unknown; export unknown --to codex --out x",
    "no session 'talk'": "view talk --namespace elsewhere",
    "no lineage 'unknown'": "show talk --lineage unknown; view talk --lineage unknown;"
    " revert talk --lineage unknown; meter talk --lineage unknown; diff long --from unknown;"
    " lineage long --lineage unknown",
    "must have characters": "append '' hi",
    "retract takes handles": "retract talk; retract talk 3 --all",
    "records takes NAME with": "records talk --history; records talk --put x; records talk --raw",
    "erase takes one of SESSION": "erase; erase talk --subject x",
    "records takes one of": "records talk a --history --remove; records talk a --put x --raw",
    "kinds are user": "blocks talk --kind king",
    "takes one of TEXT": "append talk; append talk hi --blocks x.json",
    "'king'": "append talk hi --role king",
    "'x' is not a handle": "append talk hi --expect x; recall talk x",
    "missing.json cannot be read": "append talk --blocks missing.json",
    "nothing to recall": "recall talk",
    "write 3-9": "recall talk 9-3",
    "ends at #11": "recall talk 999; show talk --from 999; show talk --to 999;"
    " fork talk new --at 999; retract talk 999",
    "not a block": "recall talk 1; pin talk 1; unpin talk 1; hide talk 1",
    "8 blocks": "recall talk last-99",
    "nothing to search for": "search !?",
    "a quote is never closed": "search '\"never closed'",
    "3 letters": "search x*",
    "#5 comes after #4": "show talk --from 5 --to 4",
    "no position 999": "view talk --at 999; diff long --from main#999",
    "no version 7": "view talk --at main@7; diff long --from main@7",
    "neutral, anthropic": "view talk --as xml",
    "'talk#' names no view: write [LINEAGE]": "view talk --at talk#",
    "no policy 'basalt'; there are rolling-timeline, ": "compact long --policy basalt",
    "no preset @basalt; it has @as_shipped": "compact long --policy tunacode@basalt",
    "there is no policy ''": "compact long --policy @later",
    "KEY=VALUE": "compact talk --set keep_tokens; replay long --policy pi --set keep_tokens",
    "keep_tokens": "compact talk --set unknown=1",
    "whole number": "compact talk --set keep_tokens=many",
    "--limit": "compact talk --limit 0; compact talk --limit many; search words --limit 0",
    "'' cannot name a lineage: write printed": "compact talk --lineage ''",
    "'a b#@' cannot name a lineage: write printed": "compact talk --lineage 'a b#@'",
    "'a@b' cannot name a lineage": "replay talk --policy pi --lineage a@b",
    "--jobs": "import --jobs 0",
    "is not known: choose one of claude-code": "export talk --to nonsense --out x",
    "missing does not exist": "import missing; demo missing",
    "cannot be opened": "backup missing/copy.db; append s hi --db missing/new.db",
    "--db needs a path": "sessions --db ''",
    "missing.db does not exist": "sessions --db missing.db; rebuild --db missing.db",
    "is a folder": "append s hi --db .",
    "nothing was compacted": "diff long",
    "no compaction 7": "diff long 7",
    "main is what agents are served": "replay long --policy pi --lineage main",
    "recorded what happened": "replay long --policy pi --lineage recorded",
    "nobody": "replay long --policy nobody",
    "poet": "replay long --policy pi --summarizer poet",
    "summary.model": "replay long --policy pi --summarizer llm",
    "request was too long: rate limit": "overflowed long 'rate limit exceeded: 429'",
    "no format 'x'": "record-call long --at 2 --lineage-version 0 --as x",
    "wake takes one of --at TIME, --in SPAN and --cancel": "wake talk; wake talk --in 5m --cancel",
    "--in takes a span as 90s, 20m, 2h or 1d, not 'soon'": "wake talk --in soon",
    "--at takes a time as 2026-01-31T09:00, not": "wake talk --at noon",
    "is past": "wake talk --at 2001-01-01T00:00+00:00; wake talk --in 0s",
    "is further away than a calendar goes": "wake talk --in 9999999d",
    "--health is for a worker that goes on": "idle --once --health h.json",
    "nowhere/h.json cannot be written (No such file": "idle --health nowhere/h.json",
    "should be greater than or equal to 1": "idle --status --last 0",
    "invalid value for '--log'": "idle --once --log xml",
    "--follow takes no --again": "import x --follow --again",
    "--follow takes no --jobs": "import x --follow --jobs 2",
    "as aider-history: only sessions that came in it": "export talk --to aider-history",
    "has no lineage 'none' (there is: main)": "export talk --to codex --lineage none",
    "name a file for the session with --out": "export talk --to openai-chat --json",
    "no is not a folder: make it first": "export talk --to openai-chat --out no/out.json",
    "an archive holds the log": "export talk --to cutbank-archive --view --out x",
    "name the sessions to write, or say --all": "export talk --to openai-chat --all --out x",
    "backtest needs a name": "backtest '' --policies none",
}
"""Command lines with a semicolon between them, by what they are answered."""


def test_wrong_usage_is_answered_in_one_line(
    run: Run, talk: Path, long_talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(talk.parent)
    before = run("sessions", "--json").json
    rows = [(shlex.split(line), said) for said, lines in WRONG.items() for line in lines.split(";")]

    assert not answered_wrongly(run, rows)
    assert run("sessions", "--json").json == before
    assert not list(talk.parent.glob("*.part"))
    # `--db` at the very end would take the next word for its path.
    in_json = {said: run(*words, "--json") for words, said in rows[::7] if words[-1] != "--db"}
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
    ('[{"kind": "user", "text": "x"}, {"kind": "tool_result", "tool_call_id": "x"}]', "no open"),
    ('[{"kind": "tool_call", "tool_call_id": "c2", "name": "n"}]', "already open"),
]


def test_a_list_with_a_wrong_block_is_refused_and_adds_nothing(
    run: Run, talk: Path, tmp_path: Path
) -> None:
    file = tmp_path / "blocks.json"
    wrong = []
    for text, said in BLOCKS:
        file.write_bytes(text.encode("latin-1"))
        wrong += answered_wrongly(run, [(["--blocks", str(file)], said)], "append", "talk")

    assert not wrong
    assert run("sessions", "--json").json[0]["position"] == 11


def test_a_verb_that_fails_leaves_no_new_session_behind(
    run: Run, talk: Path, tmp_path: Path
) -> None:
    (tmp_path / "wrong.json").write_text("{}")
    before = run("sessions", "--json").json

    answered = run("append", "new", "--response", str(tmp_path / "wrong.json"))
    put = run("records", "new", "state", "--put", str(tmp_path / "missing.json"))

    assert (answered.code, put.code) == (2, 2)
    assert run("sessions", "--json").json == before


def test_what_is_no_database_of_ours_is_refused(run: Run, talk: Path, tmp_path: Path) -> None:
    letter, other, broken = (tmp_path / name for name in ("letter.txt", "other.db", "broken.db"))
    letter.write_text("Dear river, " * 100, encoding="utf-8")
    content = talk.read_bytes()
    broken.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE songs (name TEXT)")
    read_only = f"{talk.as_uri()}?mode=ro"
    assert run("sessions", "--db", read_only, "--json").json[0]["session"] == "talk"
    wrong: Refusals = [
        (["sessions", "--db", str(letter)], "is not a database"),
        (["append", "s", "hi", "--db", str(other)], "another application"),
        (["show", "talk", "--db", str(broken)], "damaged"),
        (["append", "talk", "hi", "--db", read_only], "read-only"),
    ]

    assert not answered_wrongly(run, wrong)
    with closing(sqlite3.connect(talk)) as connection, connection:
        connection.execute("PRAGMA user_version = 1000")
    assert not answered_wrongly(run, [(["sessions"], "newer cutbank")])
