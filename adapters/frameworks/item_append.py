"""Stores the items of a framework, which may hold one half of a tool pair."""

from collections.abc import Callable, Sequence
from typing import TypeVar

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
