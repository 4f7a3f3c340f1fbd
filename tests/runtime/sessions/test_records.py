"""Records hold a program's state by name, beside the conversation and outside of it."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from any_events import JSON, NAMES
from databases import asked, each_database, memory_folder
from hypothesis import given
from hypothesis import strategies as st

import cutbank
from cutbank import (
    Block,
    ConflictError,
    InvalidPositionError,
    InvalidSettingError,
    Record,
    SessionClosedError,
    SessionStore,
    StoredSession,
    verify,
)
from cutbank.adapters.runtime.sessions import session_records


def names(found: Iterator[Record]) -> list[str]:
    return [one.name for one in found]


@each_database
def test_the_newest_value_of_a_name_counts_and_the_others_are_its_history(
    session: StoredSession,
) -> None:
    records = session.records
    first = records.put("state", {"step": 1})
    session.append(Block.user("meanwhile"))
    second = records.put("state", b"\x00\xff")
    records.put("other", None)

    newest = records.get("state")

    assert newest is not None
    assert (newest.name, newest.position, newest.value) == ("state", second, b"\x00\xff")
    assert records.get("nothing") is None
    earlier = records.get("state", at=second - 1)
    assert earlier is not None
    assert earlier.value == {"step": 1}
    assert records.get("state", at=first - 1) is None
    assert [one.position for one in records.history("state")] == [second, first]
    assert [one.position for one in records.history("state", limit=1)] == [second]
    assert [one.position for one in records.history("state", before=second)] == [first]
    other = records.get("other")
    assert other is not None
    assert (other.value, other.is_removed) == (None, False)


@each_database
def test_a_name_that_was_removed_has_no_value_until_it_is_put_again(
    session: StoredSession,
) -> None:
    records = session.records
    first = records.put("state", 1)

    assert records.remove("state")
    assert not records.remove("state")
    assert not records.remove("never put")

    assert records.get("state") is None
    assert names(records.newest()) == []
    assert [one.is_removed for one in records.history("state")] == [True, False]
    earlier = records.get("state", at=first)
    assert earlier is not None
    records.put("state", 2, expect=0)
    assert names(records.newest()) == ["state"]


@each_database
def test_names_are_found_in_order_by_their_beginning_and_in_pages(
    session: StoredSession,
) -> None:
    for number in range(120):
        session.records.put(f"checkpoint/{number:03}", number)
    session.records.put("a", 1)
    session.records.put("checkpoint0", 1)
    for _ in range(3):
        session.records.put("checkpoint/007", "again")
    session.records.remove("checkpoint/118")

    newest = session.records.newest("checkpoint/", descending=True, limit=2)
    all_of_them = names(session.records.newest("checkpoint/"))
    after = session.records.newest("checkpoint/", after="checkpoint/010", limit=3)
    before = session.records.newest(before="checkpoint/001", descending=True)

    assert names(newest) == ["checkpoint/119", "checkpoint/117"]
    assert all_of_them == [f"checkpoint/{number:03}" for number in range(120) if number != 118]
    assert names(after) == ["checkpoint/011", "checkpoint/012", "checkpoint/013"]
    assert names(before) == ["checkpoint/000", "a"]
    assert names(session.records.newest(limit=0)) == []


@each_database
def test_a_fork_has_what_its_parent_had_and_goes_its_own_way(session: StoredSession) -> None:
    session.records.put("kept", 1)
    at = session.records.put("changed", 1)
    session.records.put("changed", 2)
    fork = session.fork("fork", at=at)

    session.records.put("later", 1)
    fork.records.put("own", 1)
    assert fork.records.remove("kept")

    assert names(fork.records.newest()) == ["changed", "own"]
    assert [one.value for one in fork.records.history("changed")] == [1]
    assert [one.value for one in fork.records.history("kept")] == [None, 1]
    assert names(session.records.newest()) == ["changed", "kept", "later"]


@each_database
def test_who_expects_another_value_is_refused_and_nothing_is_stored(
    session: StoredSession, database: str
) -> None:
    first = session.records.put("state", 1, expect=0)
    with cutbank.open(database) as another:
        second = another.session("a session").records.put("state", 2, expect=first)

    for expected in (0, first):
        with pytest.raises(ConflictError, match=f"'state' is at #{second}"):
            session.records.put("state", 3, expect=expected)
        with pytest.raises(ConflictError, match=f"'state' is at #{second}"):
            session.records.remove("state", expect=expected)
    with pytest.raises(ConflictError, match=f"'new' is not there, not at #{first}"):
        session.records.put("new", 3, expect=first)

    assert session.position == second


@each_database
def test_a_repeated_key_stores_nothing_and_another_value_under_it_is_refused(
    session: StoredSession,
) -> None:
    first = session.records.put("state", {"step": 1}, key="step 1")
    block = session.append(Block.user("hello"), key="hello").last

    assert session.records.put("state", {"step": 1}, key="step 1") == first
    others: list[tuple[str, Any, str]] = [
        ("state", 2, "step 1"),
        ("x", {"step": 1}, "step 1"),
        ("x", 1, "hello"),
    ]
    for name, value, key in others:
        with pytest.raises(ConflictError, match=f"{key!r} was used for something else at #"):
            session.records.put(name, value, key=key)

    assert session.position == block


def test_what_no_record_can_hold_is_refused_in_one_line(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = session.position
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    odd: list[Any] = [{1: "a"}, {"a": {1, 2}}, float("nan"), [object()], (1,), deep]

    for value in odd:
        with pytest.raises(InvalidSettingError, match="'a name' is neither JSON nor bytes") as said:
            session.records.put("a name", value)
        assert "\n" not in str(said.value)
    for name in ("", "\0", "\ud800"):
        with pytest.raises(InvalidPositionError, match="record name"):
            session.records.put(name, 1)
    with pytest.raises(InvalidPositionError, match="has 1,001 bytes, and one may have 1,000"):
        session.records.put("x" * 1_001, 1)
    with pytest.raises(InvalidSettingError, match="has 256,000,001 bytes, and a record may have"):
        session.records.put("a name", bytes(256_000_001))
    monkeypatch.setattr(session_records, "MAX_RECORD_BYTES", 3)
    with pytest.raises(InvalidSettingError, match="has 4 bytes"):
        session.records.put("a name", "\u00e9")
    session.close()
    with pytest.raises(SessionClosedError):
        session.records.put("a name", 1)

    assert session.position == before + 1


@each_database
@pytest.mark.slow
def test_a_record_of_a_hundred_megabytes_comes_back(
    store: SessionStore, session: StoredSession
) -> None:
    value = bytes(range(256)) * 390_625

    session.records.put("large", value)

    found = session.records.get("large")
    assert found is not None
    assert found.value == value
    assert verify(store).violations == []


def test_records_are_outside_of_the_conversation(
    store: SessionStore, session: StoredSession
) -> None:
    session.append(Block.user("hello"))
    view, state = session.view(), session.log.state
    store.read_models.catch_up()
    columns = "last_activity, said_at, turns, blocks, tokens, in_use, settled"
    query = f"SELECT {columns} FROM sessions"  # noqa: S608 - ours
    row = list(store.read_models.file.fetch_rows(query, {}))

    session.records.put("state", "needle " * 9_000)
    session.records.remove("state")

    assert session.log.state == state
    after = session.view()
    assert (after.entries, after.tokens, after.fingerprint) == (
        view.entries,
        view.tokens,
        view.fingerprint,
    )
    assert [one.block.text for one in session.blocks()] == ["hello"]
    assert session.recall(search="needle") == []
    assert store.search("needle") == []
    assert list(store.read_models.file.fetch_rows(query, {})) == row
    session.clear()
    assert names(session.records.newest()) == []
    session.records.put("state", 1)
    assert session.pop() is None
    assert names(session.records.newest()) == ["state"]


@each_database
def test_no_view_reads_the_content_of_a_record(
    store: SessionStore, session: StoredSession, database: str
) -> None:
    session.append(Block.user("hello"))
    session.records.put("state", "large " * 9_000)
    session.append(Block.assistant("hi"))
    store.events.recorder.datastore.add("DELETE FROM bodies RETURNING 1", ())

    with cutbank.open(database) as reopened:
        found = reopened.session("a session")

        assert [entry.text for entry in found.view().entries] == ["hello", "hi"]
        assert [one.block.text for one in found.blocks(newest_first=True)] == ["hi", "hello"]


@each_database
def test_a_register_that_lost_or_gained_a_row_is_reported(
    store: SessionStore, session: StoredSession, database: str
) -> None:
    del database
    at = session.records.put("state", 1)
    assert verify(store).violations == []
    recorder = store.events.recorder

    recorder.datastore.add("DELETE FROM records WHERE position = ? RETURNING 1", (at,))
    lost = [(one.rule, one.position) for one in verify(store).violations]

    assert lost == [("log", at)]
    assert asked(store, "SELECT count(*) FROM records")[0][0] == 0


@given(
    puts=st.lists(
        st.tuples(st.sampled_from("abc"), st.none() | JSON | st.binary(max_size=20)), max_size=12
    ),
    more=NAMES.filter(bool),
)
def test_every_value_comes_back_at_every_position(puts: list[tuple[str, Any]], more: str) -> None:
    with memory_folder() as folder, cutbank.open(Path(folder) / "log.db") as store:
        records = store.session("s").records
        at = [(records.put(name, value), name, value) for name, value in [*puts, (more, 1)]]

        for position, name, value in at:
            found = records.get(name, at=position)
            assert found is not None
            assert found.value == value
        expected = sorted({name for _, name, _ in at})
        assert names(records.newest()) == expected
        assert names(records.newest(descending=True)) == expected[::-1]
        for one, other in pairwise(expected):
            assert names(records.newest(after=one, limit=1)) == [other]
            assert names(records.newest(before=other, limit=1, descending=True)) == [one]
        for length in range(1, len(more) + 1):
            assert more in names(records.newest(more[:length]))
