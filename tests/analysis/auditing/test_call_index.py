"""Calls are counted once for all who ask, and a count of another log is never taken for ours."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lived import Act, acts, live
from opened_stores import store_of

import cutbank
from cutbank import Block, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.auditing import call_index
from cutbank.adapters.analysis.auditing.call_index import find_calls
from cutbank.adapters.analysis.replaying.recordings import read_recording

Call = tuple[int, tuple[int, ...], tuple[str, int, int] | None]


@pytest.fixture(autouse=True)
def _keeping_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of a test are short, and its read models are not the user's."""
    monkeypatch.setattr(call_index, "MIN_CALLS_TO_SAVE", 1)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def talk(session: StoredSession, turns: int) -> None:
    for _ in range(turns):
        at, view = session.position, session.view()
        session.append(
            Block.user("Go on."),
            ToolCall(tool_call_id=f"t{at}", name="read", message_id=f"m{at}"),
            ToolResult(tool_call_id=f"t{at}", content="silt"),
            Block.assistant("Done."),
        )
        session.record_call(view, call_id=f"c{at} é")


def check_counts(*sessions: StoredSession) -> None:
    """The calls are as the log tells them, for who counted before and for who has not yet."""
    for one in sessions:
        told = [
            _plain(call.last_seen_position, call.answer, call.report)
            for call in read_recording(one).calls
        ]
        other = store_of(one).session(one.key, create=False)
        assert [_plain(*call) for call in find_calls(other).read_calls()] == told
        assert [_plain(*call) for call in find_calls(one).read_calls()] == told


def _plain(last_seen: int, answer: tuple[int, ...], told: Any) -> Call:
    record = (told.call_id, told.position, told.originator_version) if told else None
    return last_seen, answer, record


def test_a_count_goes_on_where_it_was_kept(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(session, 4)
    check_counts(session)
    kept = session.position
    talk(session, 2)
    looked_at: list[int] = []
    plain = call_index._read_content

    def noted(row: Any, *store: Any) -> Any:
        looked_at.append(row.originator_version)
        return plain(row, *store)

    monkeypatch.setattr(call_index, "_read_content", noted)

    check_counts(session)

    assert min(looked_at) > kept


@settings(max_examples=20)
@given(st.lists(acts, min_size=1, max_size=4), st.integers(1, 30))
def test_whatever_was_kept_and_when_calls_are_counted_as_the_log_tells_them(
    lives: list[list[Act]], worth_keeping: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, cutbank.open(":memory:") as store:
        patch.setattr(call_index, "MIN_CALLS_TO_SAVE", worth_keeping)
        store.read_models.catch_up()  # in memory they are there while somebody has them open
        session = store.session("s")
        for number, what in enumerate(lives):
            live(session, what)
            said(session, what)
            fork = session.fork(f"fork {number}", at=max(1, session.position - number))
            said(fork, what[::-1])

            check_counts(session, fork)


def said(session: StoredSession, what: list[Act]) -> None:
    """Answers in pieces, some named, some not, and records that come late or twice."""
    names = (None, "m", "n \ud83d")
    for _, n in what:
        if n % 5 == 4:
            view = session.view(at=max(1, session.position - n))
            session.record_call(view, call_id=f"c \ud83d {n % 3}")
        else:
            answers = n % 5 < 3
            session.append(
                Block.assistant("!", message_id=names[n % 5]) if answers else Block.user("?")
            )


@pytest.mark.parametrize("what", ["another log", "rebuilt", "damaged", "gone", "theirs"])
def test_what_was_kept_is_never_needed(session: StoredSession, what: str) -> None:
    talk(session, 3)
    check_counts(session)
    models = session.log.context.read_models

    def of_another_program() -> None:
        Path(models.name).unlink()
        with closing(sqlite3.connect(models.name)) as another_program:
            another_program.execute("CREATE TABLE theirs (one)")

    changes: dict[str, Callable[[], object]] = {
        "another log": lambda: models.file.writer.execute(
            "UPDATE counted_calls SET digest = x'00', calls = x'00', joins = x'00'"
        ),
        "rebuilt": models.rebuild,
        "damaged": lambda: Path(models.name).write_bytes(b"silt" * 5_000),
        "gone": Path(models.name).unlink,
        "theirs": of_another_program,
    }
    changes[what]()

    check_counts(session)


def test_an_event_that_cannot_be_read_once_is_not_counted_twice_later(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(session, 2)
    check_counts(session)
    talk(session, 2)
    with monkeypatch.context() as patch:
        patch.delattr(call_index, "sort_call_records")
        with pytest.raises(NameError):
            find_calls(session).read_calls()

    check_counts(session)
