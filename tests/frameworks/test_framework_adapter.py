"""A session follows a framework's own list of items, whatever others did to it meanwhile."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutbank
from cutbank import Block, Item
from cutbank.frameworks.framework_adapter import FrameworkAdapter, ItemMirror


def mirror(mirrored: ItemMirror, items: list[Any], session: str = "s") -> list[Any]:
    """Let the session have an item of each value, and return the values that are in the log."""
    log = mirrored.store.session(session)
    given = [{"of": item} for item in items]
    positions = mirrored.mirror(
        log, given, lambda at: Item(given[at], [Block.user(str(items[at]))], "test")
    )
    found: list[Any] = [one for one in log.blocks() if one.item is not None]
    assert positions == [one.position for one in found]
    return [one.item["of"] for one in found]


def raise_key_error(at: int) -> Item:
    raise KeyError(at)


WRITES = st.one_of(
    st.lists(st.integers(0, 2), max_size=5),
    st.sampled_from(["pop", "append", "call", "clear", "delete", "hide"]),
)


@given(writes=st.lists(WRITES, max_size=12))
def test_the_log_has_the_items_that_were_given_last(writes: list[list[int] | str]) -> None:
    with cutbank.open(":memory:") as store:
        items: list[Any] = []
        mirrored = ItemMirror(store)
        for write in writes:
            log = store.session("s")
            match write:
                case list():
                    items = write
                case "pop":
                    log.pop()
                case "append":
                    log.append(Item({"of": "other"}, [Block.user("other")], "test"))
                case "call":
                    log.record_call(log.view(), call_id="1")
                case "clear":
                    log.clear()
                case "delete":
                    store.delete(log)
                case _:
                    log.append(Block.note("no item"))
            assert mirror(mirrored, items) == items


def test_what_another_process_wrote_is_seen(tmp_path: Path) -> None:
    with cutbank.open(tmp_path / "a.db") as own, cutbank.open(tmp_path / "a.db") as other:
        one, two = ItemMirror(own), ItemMirror(other)
        for items in (["a"], ["a", "b"], ["a", "b", "c"]):
            assert mirror(one, items) == items
        other.session("s").retract(after=3)
        assert mirror(one, ["a", "b", "c", "d"]) == ["a", "b", "c", "d"]
        assert mirror(two, ["a", "x"]) == ["a", "x"]
        assert mirror(one, ["a", "x", "y"]) == ["a", "x", "y"]


def test_an_undone_write_is_not_remembered(tmp_path: Path) -> None:
    with cutbank.open(tmp_path / "a.db") as store:
        mirrored = ItemMirror(store)
        mirror(mirrored, ["a"])
        with pytest.raises(KeyError):
            mirrored.mirror(store.session("s"), ["a", "b"], raise_key_error)
        assert mirror(mirrored, ["a", "c"]) == ["a", "c"]


def test_more_sessions_than_are_remembered_are_followed(tmp_path: Path) -> None:
    with cutbank.open(tmp_path / "a.db") as store:
        mirrored = ItemMirror(store)
        for items in (["a"], ["a", "b"], ["c"]):
            for session in range(20):
                assert mirror(mirrored, items, str(session)) == items


def test_an_adapter_closes_the_database_that_it_opened_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with cutbank.open(path) as store:
        FrameworkAdapter(store).close()
        store.session("s").append(Block.user("Hello"))
    own = FrameworkAdapter(path)
    assert [one.key for one in own.store.sessions()] == ["s"]
    own.close()

    with pytest.raises(cutbank.StorageError):
        own.store.session("s").append(Block.user("Hello?"))
