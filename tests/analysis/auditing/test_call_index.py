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
from cutbank.adapters.analysis.auditing.call_table import CallRecordRow, CallTable
from cutbank.adapters.analysis.replaying.recordings import read_recording
from cutbank.projections.replay.call_numbers import NumberedCall

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


def asked_by_another(session: StoredSession) -> list[Call]:
    """The calls as who has not counted yet is told of them."""
    session = store_of(session).session(session.key, create=False)
    return [_plain(call) for call in find_calls(session).read_calls()]


def of_the_log(session: StoredSession) -> list[Call]:
    """The calls by the plain way: from all events of the session."""
    calls = read_recording(session).calls
    return [
        _plain(NumberedCall(call.last_seen_position, call.answer, call.report)) for call in calls
    ]


def _plain(call: NumberedCall) -> Call:
    told = call.record
    record = (told.call_id, told.position, told.originator_version) if told else None
    return call.last_seen_position, call.answer, record


def unlooked_at(*_: Any) -> Any:
    raise AssertionError("an event was counted again")


def test_a_count_goes_on_where_it_was_kept(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(session, 4)
    asked_by_another(session)
    talk(session, 2)
    looked_at: list[int] = []
    plain = call_index._read_content

    def noted(row: Any, *store: Any) -> Any:
        looked_at.append(row.originator_version)
        return plain(row, *store)

    position = session.position - 2 * 6
    monkeypatch.setattr(call_index, "_read_content", noted)

    assert asked_by_another(session) == of_the_log(session)
    assert looked_at
    assert min(looked_at) > position


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

            for one in (session, fork):
                assert asked_by_another(one) == of_the_log(one)
                assert [_plain(call) for call in find_calls(one).read_calls()] == of_the_log(one)


def said(session: StoredSession, what: list[Act]) -> None:
    """Answers in pieces, some named, some not, and records that come late or twice."""
    for _, n in what:
        if n % 5 == 4:
            session.record_call(session.view(at=max(1, session.position - n)), call_id=f"c{n % 3}")
        else:
            session.append(
                Block.user("?") if n % 5 == 3 else Block.assistant("!", message_id=NAMES[n % 5])
            )


NAMES = (None, "m", "n \ud83d")


@pytest.mark.parametrize("what", ["another log", "rebuilt", "damaged", "gone", "theirs"])
def test_what_was_kept_is_never_needed(session: StoredSession, what: str) -> None:
    talk(session, 3)
    asked_by_another(session)
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

    assert asked_by_another(session) == of_the_log(session)


def test_an_event_that_cannot_be_read_once_is_not_counted_twice_later(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(session, 2)
    find_calls(session).read_calls()
    talk(session, 2)
    with monkeypatch.context() as patch:
        patch.setattr(call_index, "sort_call_records", unlooked_at)
        with pytest.raises(AssertionError):
            find_calls(session).read_calls()

    assert [_plain(call) for call in find_calls(session).read_calls()] == of_the_log(session)


def test_packed_calls_are_read_back_as_they_were(session: StoredSession) -> None:
    talk(session, 3)
    calls = find_calls(session).read_calls()
    assert isinstance(calls, CallTable)

    again = CallTable.unpack(calls.pack())

    assert list(again) == list(calls)
    assert again[-1] == calls[-1]
    assert again[1:3] == calls[1:3]
    assert list(CallTable.unpack(CallTable().pack())) == []
    half = NumberedCall(3, (4, 5), CallRecordRow("c \ud83d", 3, 6))
    assert list(CallTable.unpack(CallTable([half]).pack())) == [half]
