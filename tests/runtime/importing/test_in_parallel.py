"""Several processes import what one would, whatever becomes of some of them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from claude_code_talk import Talk, text
from databases import on_sqlite

import cutbank
from cutbank import SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.importing import import_pool, importer
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.reports import FileReport
from cutbank.domain.errors import StorageError
from cutbank.domain.session_events import Parent

from .conftest import talk_of, write

CODE = "from cutbank.adapters.interfaces.command_line.cli import main; main()"
PROGRAM = [sys.executable, "-P", "-u", "-c", CODE]
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


@pytest.fixture
def deadly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Makes workers do this to the file named `deadly` in place of importing it."""

    def deadly(words: str) -> None:
        # Each worker is a new interpreter, which loads this module first.
        script = f"""
import os, signal
from cutbank.adapters.runtime.importing import file_import
from cutbank.domain.errors import StorageError
run = file_import.FileImport.run
def instead(self):
    if self.file.path.stem == "deadly":
        {words}
    return run(self)
file_import.FileImport.run = instead
"""
        (tmp_path / "sitecustomize.py").write_text(script)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return deadly


@pytest.fixture
def many(folder: Path) -> Path:
    for number in range(8):
        write(folder, f"s-{number}.jsonl", talk_of(f"s-{number}"))
    return folder


@pytest.mark.slow
def test_the_same_is_stored_whatever_the_number_of_processes(
    store: SessionStore, many: Path, tmp_path: Path
) -> None:
    with cutbank.open(tmp_path / "alone.db") as alone:
        expected = list(import_path(alone, many))
        stored = said(alone)

    reports = list(import_path(store, many, jobs=3))

    assert reports == expected
    assert said(store) == stored
    assert verify(store).is_ok
    assert [one.added for one in import_path(store, many, jobs=3)] == [0] * 8


@pytest.mark.slow
@pytest.mark.parametrize("first", ["parent", "agents"])
@pytest.mark.parametrize("jobs", [1, 3])
def test_sub_agents_know_their_call_whichever_file_comes_first(
    store: SessionStore, folder: Path, jobs: int, first: str
) -> None:
    parent = Talk()
    parent.user("go")
    for number in range(4):
        parent.calls("m", f"t{number}")
    for number in range(4):
        parent.result(f"t{number}", "done", toolUseResult={"agentId": f"a{number}"})
    for entry in parent.entries:
        entry["sessionId"] = "home"
    write(folder, "b.jsonl" if first == "parent" else "z.jsonl", parent)
    for number in range(4):
        agent = Talk()
        told: dict[str, Any] = {"isSidechain": True, "agentId": f"a{number}", "sessionId": "home"}
        agent.user("do it", **told)
        agent.says("m", text("done"), **told)
        write(folder, f"{'c' if first == 'parent' else 'a'}{number}.jsonl", agent)

    list(import_path(store, folder, jobs=jobs))

    assert {
        number: store.session(f"home/agent-a{number}", create=False).log.parent
        for number in range(4)
    } == {
        number: Parent(namespace="default", key="home", tool_call_id=f"t{number}")
        for number in range(4)
    }


@on_sqlite
def test_a_sub_agent_is_told_its_call_after_an_import_that_was_interrupted(
    store: SessionStore, folder: Path
) -> None:
    parent = Talk()
    parent.user("go", sessionId="home")
    parent.calls("m", "t0", sessionId="home")
    parent.result("t0", "done", toolUseResult={"agentId": "a0"}, sessionId="home")
    write(folder, "home.jsonl", parent)
    agent = Talk()
    agent.user("do it", isSidechain=True, agentId="a0", sessionId="home")
    write(folder, "later.jsonl", agent)

    reports = import_path(store, folder, skip_unchanged=True)
    next(reports)
    reports.close()
    list(import_path(store, folder, skip_unchanged=True))

    assert store.session("home/agent-a0", create=False).log.parent == Parent(
        namespace="default", key="home", tool_call_id="t0"
    )
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


@on_sqlite
def test_progress_ends_at_all_bytes_and_processes_end_though_interrupts_are_ignored(
    store: SessionStore, many: Path
) -> None:
    heard: list[tuple[int, int]] = []
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        progress = lambda *told: heard.append(told)  # noqa: E731
        reports = list(import_path(store, many, jobs=2, progress=progress))
    finally:
        signal.signal(signal.SIGINT, before)

    assert [one.complete for one in reports] == [True] * 8
    assert not active_children()
    total = sum(file.stat().st_size for file in many.iterdir())
    assert heard[-1] == (total, total)
    assert heard == sorted(heard)


@pytest.mark.slow
def test_a_process_that_is_killed_loses_its_file_and_no_other(
    store: SessionStore,
    many: Path,
    monkeypatch: pytest.MonkeyPatch,
    deadly: Callable[[str], None],
) -> None:
    file = write(many, "deadly.jsonl", talk_of("deadly"))
    deadly("os.kill(os.getpid(), signal.SIGKILL)")

    reports = {one.path: one for one in import_path(store, many, jobs=2)}

    lost = reports.pop(str(file))
    assert not lost.complete
    assert "ended: import it again" in lost.errors[0]
    assert len(reports) == 8
    assert all(one.complete for one in reports.values())
    monkeypatch.undo()
    assert all(one.complete for one in import_path(store, many, jobs=2))
    assert len(said(store)) == 9


@on_sqlite
def test_what_the_database_refuses_ends_the_import(
    store: SessionStore, many: Path, deadly: Callable[[str], None]
) -> None:
    write(many, "deadly.jsonl", talk_of("deadly"))
    deadly("raise StorageError('the disk is full')")

    with pytest.raises(StorageError, match="the disk is full"):
        list(import_path(store, many, jobs=2))


@on_sqlite
def test_whoever_stops_listening_leaves_no_process_behind(store: SessionStore, many: Path) -> None:
    reports = import_path(store, many, jobs=2)
    next(reports)
    started = active_children()

    reports.close()

    assert len(started) > 1
    assert not active_children()


def test_one_file_and_a_database_in_memory_need_no_processes(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_pool, "ImportPool", None)
    with cutbank.open(":memory:") as store:
        assert len(list(import_path(store, many, jobs=4))) == 8
        assert len(list(import_path(store, many / "s-1.jsonl", jobs=4))) == 1


@on_sqlite
def test_by_itself_it_starts_no_more_processes_than_pay(
    store: SessionStore, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_pool, "ImportPool", None)

    reports = list(import_path(store, many, jobs=None))

    assert all(one.complete for one in reports)
    monkeypatch.setattr(importer, "MIN_BYTES_PER_PROCESS", 1)
    monkeypatch.setattr(importer, "_count_cores", lambda: 2)
    with pytest.raises(TypeError):
        list(import_path(store, many, jobs=None))


@pytest.fixture
def long(folder: Path) -> Path:
    """Enough to be in the middle of it when the end comes."""
    for number in range(6):
        write(folder, f"s-{number}.jsonl", talk_of(f"s-{number}", turns=60, size=2_000))
    return folder


ENDS = [(0, 0), (1, 20_000), (4, 2_000_000)]
"""How many lines are waited for, and how far is counted then."""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize(("lines", "lag"), ENDS)
def test_an_import_that_is_killed_at_any_moment_goes_on_where_it_was(
    database: str, long: Path, tmp_path: Path, *, jobs: int, lines: int, lag: int, by: int
) -> None:
    words = [*PROGRAM, "import", str(long), "--db", database, "--jobs", str(jobs)]
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
        list(import_path(whole, long))
        assert all(one.complete and not one.errors for one in reports)
        assert said(store) == said(whole)
        assert verify(store).is_ok
        assert not any(one.added for one in import_path(store, long))
