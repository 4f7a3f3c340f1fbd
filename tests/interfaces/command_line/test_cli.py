"""The program as a whole: its options, its exit codes, its streams and its demo."""

import io
import json
import os
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from claude_code_talk import Talk
from platformdirs import user_data_path

import cutbank
from cutbank.adapters.interfaces.command_line.verbs import VERBS
from cutbank.adapters.interfaces.commands.demo import write_sample
from cutbank.adapters.runtime.sessions.session_store import open_store

from .conftest import PROGRAM, Run

ARGUMENTS = {
    **dict.fromkeys(("demo", "formats", "sessions", "costs", "policies", "settings"), ""),
    **dict.fromkeys(("verify", "rebuild"), ""),
    **dict.fromkeys(("show", "view", "diff", "lineage", "audit", "prepare"), "long"),
    **dict.fromkeys(("meter", "activate", "revert", "blocks", "records"), "long"),
    **dict.fromkeys(("recall", "pin", "unpin", "hide", "retract"), "long 3"),
    "import": "small.jsonl",
    "reread": "s-1",
    "export": "long --to openai-chat --out out.json",
    "search": "river",
    "append": "long hi",
    "fork": "long branch",
    "record-call": "long --at 3 --lineage-version 0",
    "overflowed": "long 'prompt is too long: 9000 tokens > 8000 maximum'",
    "compact": "long --set keep_tokens=1000",
    "replay": "long --policy pi --limit 9000",
    "idle": "--status",
    "wake": "long --in 20m",
    "tune": "all --policy pi --limit 4000 --trials 1",
    "backtest": "long --policies none,pi --limits 4000 --no-cache",
    "backup": "copy.db",
    "retention": "--dry-run",
    "delete": "branch",
    "erase": "s-1 --yes",
}


def test_every_verb_has_help(run: Run) -> None:
    for verb in VERBS:
        answer = run(verb, "--help")
        assert answer.code == 0
        assert f"Usage: cutbank {verb}" in answer.out
    listed = run("--help").out
    assert all(f"  {verb} " in listed for verb in VERBS)
    assert "..." not in listed.partition("Commands:")[2], "a verb's first sentence is too long"


def test_every_verb_answers_in_json(
    run: Run, long_talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(long_talk.parent)
    monkeypatch.setattr("tempfile.tempdir", str(long_talk.parent))
    small = Talk()
    small.user("Is the bank cut?", sessionId="s-1")
    Path("small.jsonl").write_bytes(small.raw())
    # What lets sessions go comes after what works on them.
    verbs = sorted(VERBS, key=lambda verb: verb in {"delete", "erase"})
    calls = [(verb, *shlex.split(ARGUMENTS[verb]), "--json") for verb in ("compact", *verbs)]
    calls += [("compact", "long", "--prepare", "--json"), ("activate", "long", "--json")]

    answers = [run(*words) for words in calls]

    assert not [answer for answer in answers if not answer.json or answer.code > 1]


def test_the_database_is_named_before_a_verb_or_after_it_or_in_the_data_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one.db", tmp_path / "two.db"

    before = run("--db", one, "--json", "append", "s", "hi")
    after = run("append", "s", "hi", "--db", two, "--json")
    run("append", "s", "ho", "--db", two)
    both = run("--db", two, "sessions", "--db", one, "--json")

    assert before.json == after.json
    assert (one.exists(), two.exists(), both.json[0]["blocks"]) == (True, True, 1)
    monkeypatch.delenv("CUTBANK_DB")
    assert run("sessions", "--json").json == []
    run("append", "s", "hi")
    assert (user_data_path("cutbank", appauthor=False) / "cutbank.db").is_file()


def test_the_version_needs_no_database_and_loads_nothing_heavy(
    run: Run, file: Path, tmp_path: Path
) -> None:
    code = (
        "import sys\n"
        "from cutbank.adapters.interfaces.command_line.cli import main\n"
        "try:\n    main(['--version'])\n"
        "finally:\n    print(sorted(m for m in sys.modules if '.' not in m))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=tmp_path
    )

    assert done.stdout.startswith("cutbank ")
    heavy = ("pydantic", "eventsourcing", "rich", "sqlite3")
    assert not [module for module in heavy if f"'{module}'" in done.stdout]
    assert "version" in run("--version", "--json").json
    assert not file.exists()


def test_a_reader_that_goes_away_is_no_error(address: str) -> None:
    with open_store(address) as store:
        store.session("s").append(cutbank.Block.user("silt\n" * 200_000))

    with subprocess.Popen(
        [*PROGRAM, "show", "s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdout
        assert program.stderr
        program.stdout.readline()
        program.stdout.close()
        complaint = program.stderr.read()

    assert (program.returncode, complaint) == (141, b"")


def test_an_interrupt_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Waiting()))

    answer = run("append", "s", "-")

    assert (answer.code, answer.err) == (130, "cutbank: interrupted\n")


@pytest.mark.slow
def test_any_text_survives_any_terminal(run: Run, tmp_path: Path) -> None:
    text = "half \ud83d, caf\u00e9, \U0001f600, \x1b[2J"
    blocks = tmp_path / "blocks.json"
    blocks.write_text(json.dumps([{"kind": "user", "text": text}]), encoding="utf-8")
    run("append", "s", "--blocks", blocks)

    for encoding in ("ascii", "utf-8", "cp1252"):
        environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
        shown, recalled = [
            subprocess.run(
                [*PROGRAM, *words], capture_output=True, check=True, env=environment
            ).stdout
            for words in (["show", "s"], ["recall", "s", "last", "--json"])
        ]
        assert b"\\x1b[2J" in shown
        assert json.loads(recalled.decode(encoding))["recalled"][0]["text"] == text


def test_the_demo_compacts_recalls_and_verifies_and_a_second_one_says_what_there_is(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    answer = run("demo", "--db", tmp_path / "x.db")
    again = run("demo", "--db", tmp_path / "x.db")
    as_json = run("demo", "--json", "--db", tmp_path / "y.db")

    assert answer.code == again.code == as_json.code == 0
    assert len(answer.out.splitlines()) <= 40
    for word in ("before", "after", "recall", "as before it left", "all is well", "sha256"):
        assert word in answer.out
    assert "NOT" not in answer.out
    assert "since the last compaction" in again.out
    tour = as_json.json
    assert tour["before"]["tokens"] > 150_000 > tour["after"]["tokens"]
    assert all(one["original"] for one in tour["recalled"])
    assert (tour["errors"], tour["compaction"]["compacted"], tour["verify"]["ok"]) == (
        0,
        True,
        True,
    )
    assert not file.exists(), "the demo has a database of its own"
    readme = (Path(__file__).parents[3] / "README.md").read_text("utf-8")
    for size in (tour["before"]["tokens"], tour["after"]["tokens"]):
        assert f" {size:,} tokens" in readme, "as the picture of it says"


def test_the_demo_counts_what_it_could_not_read_and_names_the_command_that_lists_it(
    run: Run, tmp_path: Path
) -> None:
    transcript = tmp_path / "session.jsonl"
    write_sample(transcript)
    transcript.write_bytes(transcript.read_bytes() + b'[]\n"text"\n')

    answer = run("demo", transcript, "--db", tmp_path / "x.db")

    assert (answer.code, "\nnot read  2 damaged entries; `cutbank import -v`" in answer.out) == (
        0,
        True,
    )


def test_the_shipped_file_is_what_the_script_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, scripts = tmp_path / "session.jsonl", Path(__file__).parents[3] / "scripts"
    monkeypatch.syspath_prepend(scripts)

    write_sample(path)

    content = path.read_bytes()
    assert content == runpy.run_path(str(scripts / "make_sample.py"))["make_sample"]()
    assert b"\r" not in content
    entries = [json.loads(line) for line in content.splitlines()]
    seen = [None]
    for entry in entries:
        if "uuid" in entry:
            assert entry["parentUuid"] in seen
            seen.append(entry["uuid"])
