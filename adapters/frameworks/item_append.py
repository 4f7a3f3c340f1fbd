"""Stores the items of a framework, which may hold one half of a tool pair."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import JsonValue

from cutbank import (
    AppendResult,
    Block,
    BlockKind,
    ConflictError,
    DuplicateToolCallError,
    Item,
    OrphanToolResultError,
    SessionStore,
    StoredSession,
)

_T = TypeVar("_T")


def append_items(
    store: SessionStore,
    session: StoredSession,
    items: Sequence[Item],
    keys: Sequence[str] | None = None,
    *,
    expect: int | None = None,
) -> None:
    """Store items in one transaction; a result without a call, or a second open call, as a text.

    `keys` names each item, and those whose names were used before are not stored again. `expect`
    is the position that the caller believes newest; ConflictError if it is not.
    """
    try:
        session.append(*items, keys=keys, expect=expect)
    except (DuplicateToolCallError, OrphanToolResultError):
        with store.batch():
            for index, item in enumerate(items):
                newest = None if index else expect
                _append_any(store, session, item, keys and [keys[index]], newest)


def repeat_overtaken(work: Callable[[], _T], times: int = 100) -> _T:
    """Do work again that another process has overtaken. Raises ConflictError in the end."""
    for _ in range(times - 1):
        try:
            return work()
        except ConflictError:
            continue
    return work()


def mirror_items(
    store: SessionStore,
    session: StoredSession,
    given: Sequence[JsonValue],
    read: Callable[[int], Item],
) -> list[int]:
    """Let a session have exactly the items `given`, and return the position of each.

    What it has after the first item that differs is taken back, and the items from there on, which
    `read` makes by their index, are stored, all in one transaction.
    """
    with store.batch():
        stored = [(one.position, one.item) for one in session.blocks() if one.item is not None]
        pairs = zip(stored, given, strict=False)
        same = next(
            (at for at, ((_, item), wanted) in enumerate(pairs) if item != wanted),
            min(len(stored), len(given)),
        )
        kept = [position for position, _ in stored[:same]]
        last = kept[-1] if kept else 0
        if same < len(stored):
            session.retract(after=last, reason="changed in the state")
        if same == len(given):
            return kept
        newest = session.position
        append_items(store, session, [read(at) for at in range(same, len(given))])
        new = session.blocks(after=newest)
        return kept + [one.position for one in new if one.stored_item is not None]


def _append_any(
    store: SessionStore,
    session: StoredSession,
    item: Item,
    keys: Sequence[str] | None,
    expect: int | None,
) -> AppendResult:
    try:
        with store.batch():
            return session.append(item, keys=keys, expect=expect)
    except (DuplicateToolCallError, OrphanToolResultError):
        blocks = [
            Block(kind=BlockKind.DEVELOPER, text=block.text, message_id=block.message_id)
            for block in item.blocks
        ]
        return session.append(Item(item.json, blocks, item.provider), keys=keys, expect=expect)
