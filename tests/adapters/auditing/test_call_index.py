"""Calls are counted once for all who ask, and a count of another log is never taken for ours."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lived import Act, acts, live

import cutbank
from cutbank import Block, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.auditing import call_index
from cutbank.adapters.analysis.auditing.call_table import Counted, Record
from cutbank.adapters.analysis.replaying.recordings import recording_of
from cutbank.adapters.storage.read_models.location import read_models_of
from cutbank.projections.replay.call_numbers import Numbered

Call = tuple[int, tuple[int, ...], tuple[str, int, int] | None]


@pytest.fixture(autouse=True)
def _keeping_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of a test are short, and its read models are not the user's."""
    monkeypatch.setattr(call_index, "WORTH_KEEPING", 1)
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
    session = session.store.session(session.key, create=False)
    return [_plain(call) for call in session.call_index.calls()]


def of_the_log(session: StoredSession) -> list[Call]:
    """The calls by the plain way: from all events of the session."""
    calls = recording_of(session).calls
    return [_plain(Numbered(call.sees, call.answer, call.reported)) for call in calls]


def _plain(call: Numbered) -> Call:
    told = call.told
    record = (told.call_id, told.position, told.originator_version) if told else None
    return call.sees, call.answer, record


def unlooked_at(*_: Any) -> Any:
    raise AssertionError("an event was counted again")


def test_who_asks_next_looks_at_no_event(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(session, 4)
    counted = asked_by_another(session)
    monkeypatch.setattr(call_index, "_content", unlooked_at)

    assert asked_by_another(session) == counted == of_the_log(session)


def test_a_count_goes_on_where_it_was_kept(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(session, 4)
    asked_by_another(session)
    talk(session, 2)
    looked_at: list[int] = []
    plain = call_index._content

    def noted(row: Any, *store: Any) -> Any:
        looked_at.append(row.originator_version)
        return plain(row, *store)

    position = session.position - 2 * 6
    monkeypatch.setattr(call_index, "_content", noted)

    assert asked_by_another(session) == of_the_log(session)
    assert looked_at
    assert min(looked_at) > position


@pytest.mark.parametrize(
    ("first", "then", "is_one"),
    [(None, None, True), ("m", "m", True), ("m", None, False), (None, "m", False)],
)
def test_pieces_of_an_answer_are_one_though_the_count_was_kept_between_them(
    session: StoredSession, first: str | None, then: str | None, is_one: bool
) -> None:
    session.append(Block.user("Hi."), Block.thinking("Hm.", message_id=first))
    before = asked_by_another(session)
    session.append(Block.assistant("Yes.", message_id=then))

    calls = asked_by_another(session)

    assert calls == of_the_log(session)
    assert (len(calls) == len(before)) == is_one


@given(st.lists(acts, min_size=1, max_size=4), st.integers(1, 30))
def test_whatever_was_kept_and_when_calls_are_counted_as_the_log_tells_them(
    lives: list[list[Act]], worth_keeping: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, cutbank.open(":memory:") as store:
        patch.setattr(call_index, "WORTH_KEEPING", worth_keeping)
        store.read_models.catch_up()  # in memory they are there while somebody has them open
        session = store.session("s")
        for number, what in enumerate(lives):
            live(session, what)
            said(session, what)
            fork = session.fork(f"fork {number}", at=max(1, session.position - number))
            said(fork, what[::-1])

            for one in (session, fork):
                assert asked_by_another(one) == of_the_log(one)
                assert [_plain(call) for call in one.call_index.calls()] == of_the_log(one)


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


@pytest.mark.parametrize("what", ["another log", "rebuilt", "damaged", "gone"])
def test_what_was_kept_is_never_needed(session: StoredSession, what: str) -> None:
    talk(session, 3)
    asked_by_another(session)
    models = session.store.read_models
    changes: dict[str, Callable[[], object]] = {
        "another log": lambda: models.file.writer.execute(
            "UPDATE counted_calls SET digest = x'00', calls = x'00', joins = x'00'"
        ),
        "rebuilt": models.rebuild,
        "damaged": lambda: Path(models.name).write_bytes(b"silt" * 5_000),
        "gone": Path(models.name).unlink,
    }
    changes[what]()

    assert asked_by_another(session) == of_the_log(session)


def test_where_nothing_can_be_kept_calls_are_counted_all_the_same(session: StoredSession) -> None:
    talk(session, 3)
    place = Path(read_models_of(session.store.name))
    with closing(sqlite3.connect(place)) as another_program:
        another_program.execute("CREATE TABLE theirs (one)")

    assert asked_by_another(session) == of_the_log(session)


def test_a_log_that_was_restored_and_went_on_otherwise_is_counted_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with cutbank.open(path) as store:
        talk(store.session("s"), 2)
    shutil.copy(path, tmp_path / "backup.db")
    with cutbank.open(path) as store:
        talk(store.session("s"), 2)
        kept = asked_by_another(store.session("s"))
    shutil.copy(tmp_path / "backup.db", path)

    with cutbank.open(path) as store:
        session = store.session("s")
        session.append(*[Block.user("Otherwise.")] * 11)

        assert asked_by_another(session) == of_the_log(session) != kept


def test_an_event_that_cannot_be_read_once_is_not_counted_twice_later(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(session, 2)
    session.call_index.calls()
    talk(session, 2)
    with monkeypatch.context() as patch:
        patch.setattr(call_index, "in_order", unlooked_at)
        with pytest.raises(AssertionError):
            session.call_index.calls()

    assert [_plain(call) for call in session.call_index.calls()] == of_the_log(session)


def test_packed_calls_are_read_back_as_they_were(session: StoredSession) -> None:
    talk(session, 3)
    calls = session.call_index.calls()
    assert isinstance(calls, Counted)

    again = Counted.unpacked(calls.packed())

    assert list(again) == list(calls)
    assert again[-1] == calls[-1]
    assert again[1:3] == calls[1:3]
    assert list(Counted.unpacked(Counted().packed())) == []


def test_half_a_character_in_a_name_is_kept_as_it_was() -> None:
    call = Numbered(3, (4, 5), Record("c \ud83d", 3, 6))

    assert list(Counted.unpacked(Counted([call]).packed())) == [call]
