"""Stores the items of a framework, which may hold one half of a tool pair."""

from collections.abc import Sequence

from cutbank import (
    AppendResult,
    Block,
    BlockKind,
    DuplicateToolCallError,
    Item,
    OrphanToolResultError,
    SessionStore,
    StoredSession,
)


def append_items(
    store: SessionStore,
    session: StoredSession,
    items: Sequence[Item],
    keys: Sequence[str] | None = None,
) -> None:
    """Store items in one transaction; a result without a call, or a second open call, as a text.

    `keys` names each item, and those whose names were used before are not stored again.
    """
    try:
        session.append(*items, keys=keys)
    except (DuplicateToolCallError, OrphanToolResultError):
        with store.batch():
            for index, item in enumerate(items):
                _append_any(store, session, item, keys and [keys[index]])


def _append_any(
    store: SessionStore, session: StoredSession, item: Item, keys: Sequence[str] | None
) -> AppendResult:
    try:
        with store.batch():
            return session.append(item, keys=keys)
    except (DuplicateToolCallError, OrphanToolResultError):
        blocks = [
            Block(kind=BlockKind.DEVELOPER, text=block.text, message_id=block.message_id)
            for block in item.blocks
        ]
        return session.append(Item(item.json, blocks, item.provider), keys=keys)
