"""The demo shows what cutbank is for, over a sample that is a transcript like any other."""

import json
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cutbank.adapters.interfaces.sample import write_sample
from cutbank.adapters.runtime.sessions.session_store import open_store

from .conftest import Run


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the demo leaves behind goes where the tests clean up."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_the_demo_answers_in_json(run: Run, tmp_path: Path) -> None:
    answer = run("demo", "--json", "--db", tmp_path / "x.db")

    tour = answer.json
    assert answer.code == 0
    assert tour["database"] == str(tmp_path / "x.db")
    assert tour["before"]["tokens"] > 150_000 > tour["after"]["tokens"]
    assert tour["compaction"]["compacted"]
    assert sum(kind["blocks"] for kind in tour["left"]["kinds"].values()) > 100
    assert tour["recalled"]
    assert all(one["original"] for one in tour["recalled"])
    assert tour["verify"]["ok"]
    with open_store(tmp_path / "x.db") as store:
        view = store.session(tour["session"], create=False).view()
        assert view.tokens == tour["after"]["tokens"]


def test_the_demo_compacts_recalls_and_verifies_and_a_second_one_says_what_there_is(
    run: Run, file: Path, tmp_path: Path
) -> None:
    answer = run("demo", "--db", tmp_path / "x.db")
    again = run("demo", "--db", tmp_path / "x.db")

    assert answer.code == again.code == 0
    assert len(answer.out.splitlines()) <= 80
    for word in ("before", "after", "recall", "as before it left", "Verify", "sha256"):
        assert word in answer.out
    assert "NOT" not in answer.out
    assert "since the last compaction" in again.out
    assert not file.exists(), "the demo has a database of its own"


SCRIPTS = Path(__file__).parents[3] / "scripts"
CHARACTERS_A_TOKEN = 4

Entry = dict[str, Any]


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    path = tmp_path_factory.mktemp("sample") / "session.jsonl"
    write_sample(path)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_shipped_file_is_what_the_script_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "session.jsonl"
    monkeypatch.syspath_prepend(SCRIPTS)

    write_sample(path)

    assert path.read_bytes() == runpy.run_path(str(SCRIPTS / "make_sample.py"))["make_sample"]()
    assert path.read_bytes().endswith(b"}\n")
    assert b"\r" not in path.read_bytes()


def test_every_entry_follows_one_that_came_before(entries: list[Entry]) -> None:
    chain = [entry for entry in entries if "uuid" in entry]
    seen: set[str] = set()
    for entry in chain:
        assert entry["uuid"] not in seen
        assert entry["parentUuid"] in seen or not seen
        seen.add(entry["uuid"])

    assert chain[0]["parentUuid"] is None
    assert len({entry["sessionId"] for entry in chain}) == 1
    times = [entry["timestamp"] for entry in chain]
    assert times == sorted(times)


def test_every_call_is_answered_once_and_after_it_was_made(entries: list[Entry]) -> None:
    open_calls: set[str] = set()
    answered: Counter[str] = Counter()
    for _, block in blocks(entries):
        if block["type"] == "tool_use":
            open_calls.add(block["id"])
        elif block["type"] == "tool_result":
            open_calls.remove(block["tool_use_id"])
            answered[block["tool_use_id"]] += 1

    assert not open_calls
    assert set(answered.values()) == {1}


def test_it_is_long_and_a_cut_falls_inside_its_last_turn_but_one(entries: list[Entry]) -> None:
    turns: list[int] = []
    for entry, block in blocks(entries):
        if entry["type"] == "user" and block["type"] == "text":
            turns.append(0)
        turns[-1] += visible(block)
    tokens = [size // CHARACTERS_A_TOKEN for size in turns]

    assert 12 <= len(turns) <= 14
    assert 150_000 < sum(tokens) < 200_000
    assert tokens[-2] > 60_000
    assert tokens[-1] < 20_000
    assert tokens[-1] + tokens[-2] > 60_000


def test_the_rules_of_the_user_come_first_and_the_work_is_not_done(entries: list[Entry]) -> None:
    spoken = blocks(entries)
    todos = [block["input"]["todos"] for _, block in spoken if block.get("name") == "TodoWrite"]

    assert "never touch the migrations folder" in spoken[0][1]["text"]
    assert "Use tabs in ops/" in spoken[0][1]["text"]
    assert spoken[-1][1]["text"].endswith("?")
    assert {todo["status"] for todo in todos[-1]} == {"completed", "in_progress", "pending"}


def blocks(entries: list[Entry]) -> list[tuple[Entry, Entry]]:
    """Each block of what was said, with its entry; a prompt counts as a text."""
    found: list[tuple[Entry, Entry]] = []
    for entry in entries:
        content = entry.get("message", {}).get("content", [])
        said = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found += [(entry, block) for block in said]
    return found


def visible(block: Entry) -> int:
    """Characters of a block that a model sees."""
    match block["type"]:
        case "tool_use":
            return len(json.dumps(block["input"], ensure_ascii=False))
        case "tool_result":
            return len(block["content"])
        case kind:
            return len(block[kind])
