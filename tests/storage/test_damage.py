"""Damage is reported in one line, and never passes for content."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from faulty import texts
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block, CompactionOptions, ToolCall, ToolResult
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.errors import StorageError


def flips(content: bytes, page: int, by: int) -> Iterator[bytes]:
    for start in range(0, len(content), page):
        for where in (start + page // 2, start + page - 200):
            piece = bytes(byte ^ by for byte in content[where : where + 40])
            yield content[:where] + piece + content[where + 40 :]


def cuts(content: bytes, page: int) -> Iterator[bytes]:
    for start in range(0, len(content), page):
        if start:  # a file without a byte in it is a new one
            yield content[:start]
        yield content[:start] + bytes(page) + content[start + page :]


def headers(content: bytes, page: int) -> Iterator[bytes]:
    del page
    for at in range(0, 100, 3):
        yield content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


@pytest.mark.parametrize(
    ("damages", "least", "compress", "is_copy"),
    [
        pytest.param(partial(flips, by=0xFF), 0.25, False, False, id="all bits"),
        pytest.param(partial(flips, by=0x01), 0.25, True, False, id="compressed"),
        pytest.param(partial(flips, by=0x01), 0.25, False, True, id="a copy"),
        # Nothing is missed but a page that is not in use.
        pytest.param(cuts, 0.95, False, False, id="cut short or zeros"),
        pytest.param(headers, 0.3, False, False, id="header"),
    ],
)
def test_damage_is_reported_in_one_line_and_never_passes_for_content(
    tmp_path: Path,
    damages: Callable[[bytes, int], Iterator[bytes]],
    least: float,
    *,
    compress: bool,
    is_copy: bool,
) -> None:
    """Each page in turn is damaged; what then passes for sound is what was said.

    A copy is looked through before anything is read from it; a file in its place is not.
    """
    path = tmp_path / "log.db"
    damaged = tmp_path / "copy.db" if is_copy else path
    said = write_something(path, compress=compress)
    content = path.read_bytes()
    reported = tried = 0

    for damage in damages(content, int.from_bytes(content[16:18], "big")):
        damaged.write_bytes(damage)

        complaints = look_through(damaged, said)

        tried += 1
        reported += bool(complaints)
        assert all("\n" not in complaint for complaint in complaints)

    assert reported > least * tried


@pytest.mark.parametrize("how", ["cut short", "a bad frame", "a bad header"])
def test_a_damaged_log_loses_its_tail_and_nothing_that_was_in_the_file(
    tmp_path: Path, how: str
) -> None:
    """What a crash of the disk leaves: SQLite checks each commit in the log, and takes no half."""
    path, crashed = tmp_path / "log.db", tmp_path / "crashed"
    crashed.mkdir()
    words = [f"{number}" for number in range(60)]
    with cutbank.open(path) as store:
        session = store.session("session")
        for word in words[:20]:
            session.append(Block.user(word))
        sqlite_recorder(store).datastore.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for at in range(20, 60, 2):
            session.append(Block.user(words[at]), Block.assistant(words[at + 1]))
        for name in ("log.db", "log.db-wal"):
            shutil.copy(tmp_path / name, crashed / name)
    log = bytearray((crashed / "log.db-wal").read_bytes())
    middle = len(log) // 2
    match how:
        case "cut short":
            del log[middle:]
        case "a bad frame":
            log[middle] ^= 0xFF
        case _:
            log[10] ^= 0xFF
    (crashed / "log.db-wal").write_bytes(log)

    with cutbank.open(crashed / "log.db") as store:
        session = store.session("session")
        found = texts(session)
        assert found == words[: len(found)]
        assert len(found) % 2 == 0
        assert 20 <= len(found) < 60
        session.append(Block.user("goes on"))
        assert verify(store).violations == []


def write_something(path: Path, *, compress: bool) -> dict[str, list[str]]:
    with cutbank.open(path, compress=compress) as store:
        for key in ("one", "two"):
            session = store.session(key)
            for number in range(12):
                session.append(
                    Block.user(f"question {number} of {key} " * 9),
                    ToolCall(tool_call_id=f"{number}", name="read", arguments={"n": number}),
                )
                size = 3_000 if number == 5 else 30
                session.append(ToolResult(tool_call_id=f"{number}", content=f"{number}, " * size))
            assert session.compact(
                limit=2_000, options=CompactionOptions(settings={"keep_tokens": "300"})
            ).compacted
        return {session.key: texts(session) for session in store.sessions()}


def look_through(path: Path, said: dict[str, list[str]]) -> list[str]:
    """What a reader of a damaged database is told; where it is nothing, all must be sound."""
    try:
        with cutbank.open(path) as store:
            verdict = verify(store)
            found = {session.key: texts(session) for session in store.sessions()}
            for session in store.sessions():
                session.view()
    except StorageError as error:
        return [str(error)]
    if verdict.is_ok:
        assert found == said
    return [violation.what for violation in verdict.violations]
