"""Damage is reported in one line, and never passes for content."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from faulty import texts

import cutbank
from cutbank import Block, CompactionOptions, StorageError, ToolCall, ToolResult, verify


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
