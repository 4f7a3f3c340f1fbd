"""Several processes import what one would, whatever becomes of some of them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from claude_code_talk import Talk, text
from transcripts import import_path

import cutbank
from cutbank import FileReport, Parent, SessionStore, StorageError, verify
from cutbank.adapters.runtime.importing import import_pool, importer

from .conftest import talk_of, write

PROGRAM = [sys.executable, "-P", "-u", "-m", "cutbank"]
"""Says each line when it is due."""


@pytest.fixture
def store(database: str) -> Iterator[SessionStore]:
    """As others can open it: on the machine's own clock."""
    with cutbank.open(database) as opened:
        yield opened


def said(store: SessionStore) -> dict[str, list[str]]:
    """Each session's blocks, in their order."""
    return {
        one.key: [entry.text for entry in one.view(lineage_version=0).entries]
        for one in store.sessions()
    }


def make_deadly(monkeypatch: pytest.MonkeyPatch, folder: Path, words: str) -> Path:
    """Make workers do this to the file that is returned, in place of importing it."""
    script = f"""
import os, signal
from cutbank.adapters.runtime.importing import import_pool
from cutbank.domain.errors import StorageError
run = import_pool.import_file
def instead(store, options, file, *rest):
    if file.path.stem == "deadly":
        {words}
    return run(store, options, file, *rest)
import_pool.import_file = instead
"""
    # Each worker is a new interpreter, which loads this module first.
    (folder.parent / "sitecustomize.py").write_text(script)
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    return write(folder, "deadly.jsonl", talk_of("deadly"))


@pytest.fixture
def many(folder: Path) -> Path:
    for number in range(8):
        write(folder, f"s-{number}.jsonl", talk_of(f"s-{number}"))
    return folder


def test_the_same_is_stored_whatever_the_number_of_processes(
    store: SessionStore, many: Path, tmp_path: Path
) -> None:
    heard: list[tuple[int, int]] = []
    with cutbank.open(tmp_path / "alone.db") as alone:
        expected = list(import_path(alone, many))
        stored = said(alone)

    others = active_children()  # which other tests keep
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which processes inherit
    try:
        reports = list(import_path(store, many, jobs=3, progress=lambda *told: heard.append(told)))
    finally:
        signal.signal(signal.SIGINT, before)

    assert set(active_children()) <= set(others)
    assert reports == expected
    assert said(store) == stored
    assert verify(store).is_ok
    total = sum(file.stat().st_size for file in many.iterdir())
    assert heard == sorted(heard)
    assert heard[-1] == (total, total)
    assert [one.added for one in import_path(store, many, jobs=3)] == [0] * 8


def parent_of(agents: int) -> Talk:
    """A talk that calls so many agents, each of which answers."""
    talk = Talk()
    talk.user("go", sessionId="home")
    for number in range(agents):
        talk.calls("m", f"t{number}", sessionId="home")
    for number in range(agents):
        answer = {"agentId": f"a{number}"}
        talk.result(f"t{number}", "done", toolUseResult=answer, sessionId="home")
    return talk


def agent_of(number: int) -> Talk:
    talk = Talk()
    told: dict[str, Any] = {"isSidechain": True, "agentId": f"a{number}", "sessionId": "home"}
    talk.user("do it", **told)
    talk.says("m", text("done"), **told)
    return talk


def check_parents(store: SessionStore, agents: int) -> None:
    for number in range(agents):
        parent = store.session(f"home/agent-a{number}", create=False).log.parent
        assert parent == Parent(namespace="default", key="home", tool_call_id=f"t{number}")


@pytest.mark.slow
@pytest.mark.parametrize("first", ["parent", "agents"])
@pytest.mark.parametrize("jobs", [1, 3])
def test_sub_agents_know_their_call_whichever_file_comes_first(
    store: SessionStore, folder: Path, jobs: int, first: str
) -> None:
    write(folder, "a.jsonl" if first == "parent" else "z.jsonl", parent_of(4))
    for number in range(4):
        write(folder, f"b{number}.jsonl", agent_of(number))

    list(import_path(store, folder, jobs=jobs))

    check_parents(store, 4)


def test_a_sub_agent_is_told_its_call_after_an_import_that_was_interrupted(
    store: SessionStore, folder: Path
) -> None:
    write(folder, "home.jsonl", parent_of(1))
    write(folder, "later.jsonl", agent_of(0))

    reports = import_path(store, folder, skip_unchanged=True)
    next(reports)
    reports.close()
    list(import_path(store, folder, skip_unchanged=True))

    check_parents(store, 1)
    again = list(import_path(store, folder, skip_unchanged=True))
    assert [one.passed for one in again] == ["unchanged", "unchanged"]


@pytest.mark.slow
def test_files_of_one_session_are_stored_one_after_the_other(
    store: SessionStore, folder: Path
) -> None:
    names = [f"part {number}" for number in range(4)]
    for number, name in enumerate(names):
        talk = Talk()
        talk.added = 10_000 * number
        for turn in range(200):
            talk.user(f"{name}, {turn} " + "x" * 400, sessionId="s")
        talk.entries[0]["parentUuid"] = "elsewhere"
        write(folder, f"{number}.jsonl", talk)

    list(import_path(store, folder, jobs=4))

    notes = store.session("s").recall(search="part")
    order = [found.block.text.split(",")[0] for found in notes]
    assert sorted(dict.fromkeys(order)) == names
    assert order == [name for name in dict.fromkeys(order) for _ in range(200)]


@pytest.mark.slow
def test_a_process_that_is_killed_loses_its_file_and_no_other(
    store: SessionStore, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_deadly(monkeypatch, many, "os.kill(os.getpid(), signal.SIGKILL)")

    reports = {one.path: one for one in import_path(store, many, jobs=2)}

    lost = reports.pop(str(file))
    assert not lost.complete
    assert "ended: import it again" in lost.errors[0]
    assert len(reports) == 8
    assert all(one.complete for one in reports.values())
    monkeypatch.undo()
    assert all(one.complete for one in import_path(store, many, jobs=2))
    assert len(said(store)) == 9


def test_what_the_database_refuses_ends_the_import(
    store: SessionStore, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_deadly(monkeypatch, many, "raise StorageError('the disk is full')")

    with pytest.raises(StorageError, match="the disk is full"):
        list(import_path(store, many, jobs=2))


def test_whoever_stops_listening_leaves_no_process_behind(store: SessionStore, many: Path) -> None:
    others = set(active_children())
    reports = import_path(store, many, jobs=2)
    next(reports)
    started = set(active_children()) - others

    reports.close()

    assert len(started) > 1
    assert not started & set(active_children())


def test_it_starts_no_processes_that_do_not_pay(
    store: SessionStore, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_pool, "import_in_processes", None)
    with cutbank.open(":memory:") as memory:
        assert len(list(import_path(memory, many, jobs=4))) == 8
    assert len(list(import_path(store, many / "s-1.jsonl", jobs=4))) == 1
    assert all(one.complete for one in import_path(store, many, jobs=None))

    monkeypatch.setattr(importer, "MIN_BYTES_PER_PROCESS", 1)
    monkeypatch.setattr(importer, "count_cores", lambda: 2)
    with pytest.raises(TypeError):
        list(import_path(store, many, jobs=None))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs", "by", "lines", "lag"),
    [
        (1, signal.SIGINT, 0, 0),
        (2, signal.SIGKILL, 0, 0),
        (1, signal.SIGKILL, 1, 20_000),
        (2, signal.SIGINT, 1, 20_000),
        (2, signal.SIGKILL, 4, 2_000_000),
    ],
)
def test_an_import_that_is_killed_at_any_moment_goes_on_where_it_was(
    database: str, folder: Path, tmp_path: Path, *, jobs: int, lines: int, lag: int, by: int
) -> None:
    """The end comes after so many lines, and after counting so far."""
    for number in range(6):
        write(folder, f"s-{number}.jsonl", talk_of(f"s-{number}", turns=60, size=2_000))
    words = [*PROGRAM, "import", str(folder), "--db", database, "--jobs", str(jobs)]
    with cutbank.open(database):
        pass  # what making the tables does to whoever is killed is tested elsewhere
    first = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert first.stdout
    for _ in range(lines):
        first.stdout.readline()
    for _ in range(lag):
        pass
    os.kill(first.pid, by)
    first.communicate()

    again = subprocess.run([*words, "--json"], capture_output=True, text=True, check=True)

    reports = [FileReport(**one) for one in json.loads(again.stdout)]
    with cutbank.open(database) as store, cutbank.open(tmp_path / "whole.db") as whole:
        list(import_path(whole, folder))
        assert all(one.complete and not one.errors for one in reports)
        assert said(store) == said(whole)
        assert verify(store).is_ok
        assert not any(one.added for one in import_path(store, folder))
