"""What adapters share: the store that they use, and how a framework's items come into it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from pydantic import JsonValue

import cutbank
from cutbank import (
    AppendResult,
    Block,
    BlockKind,
    ConflictError,
    DuplicateToolCallError,
    Item,
    OrphanToolResultError,
    Policy,
    SessionStore,
    StoredSession,
)

_T = TypeVar("_T")


class FrameworkAdapter:
    """Keeps sessions in a store: an open one, or the database of an address, which it closes."""

    def __init__(
        self,
        store: SessionStore | str | Path = "sessions.db",
        *,
        namespace: str = "default",
        policy: str | Policy | None = None,
        limit: int | None = None,
        model: str | None = None,
    ) -> None:
        self._is_owner = not isinstance(store, SessionStore)
        self.store = store if isinstance(store, SessionStore) else cutbank.open(store)
        self.namespace = namespace
        self._compaction: dict[str, Any] = {"policy": policy, "limit": limit, "model": model}
        self._mirror = ItemMirror(self.store)

    def close(self) -> None:
        """Close the database, if it was opened here."""
        if self._is_owner:
            self.store.close()


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


class _Mirrored(NamedTuple):
    """The items of a session at one position of its stream."""

    stream: UUID
    position: int
    retraction: int
    """The position of the newest retraction then."""
    items: Sequence[tuple[int, JsonValue]]


_MAX_MIRRORED = 16
"""How many sessions are remembered, those that were used last."""


class ItemMirror:
    """Lets sessions of a store have exactly the items that a framework gives.

    It remembers what the sessions used last have, so as to read only what came since, unless
    something was taken back.
    """

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self._known: dict[tuple[str, str], _Mirrored] = {}

    def mirror(
        self, session: StoredSession, given: Sequence[JsonValue], read: Callable[[int], Item]
    ) -> list[int]:
        """Let a session have the items `given`, and return the position of each.

        What it has after the first item that differs is taken back, and the items from there on,
        which `read` makes by their index, are stored, all in one transaction.
        """
        with self.store.batch():
            stored = self.read_stored(session)
            pairs = zip(stored, given, strict=False)
            same = next(
                (at for at, ((_, item), wanted) in enumerate(pairs) if item != wanted),
                min(len(stored), len(given)),
            )
            kept = stored[:same]
            if same < len(stored):
                last = kept[-1][0] if kept else 0
                session.retract(after=last, reason="changed in the state")
            newest = session.position
            if same < len(given):
                append_items(self.store, session, [read(at) for at in range(same, len(given))])
                kept += _read_items(session, newest)
            mirrored = _make_mirrored(session, kept)
        self._remember(session, mirrored)
        return [position for position, _ in kept]

    def read_stored(self, session: StoredSession) -> list[tuple[int, JsonValue]]:
        """Return the position and JSON of each item that a session has."""
        known = self._known.get((session.namespace, session.key))
        if (
            known is None
            or known.stream != session.log.id
            or known.retraction != session.info.state.retraction
        ):
            return _read_items(session, 0)
        return [*known.items, *_read_items(session, known.position)]

    def _remember(self, session: StoredSession, mirrored: _Mirrored) -> None:
        known = self._known
        known.pop((session.namespace, session.key), None)
        known[session.namespace, session.key] = mirrored
        while len(known) > _MAX_MIRRORED:
            known.pop(next(iter(known)), None)


def _make_mirrored(session: StoredSession, items: Sequence[tuple[int, JsonValue]]) -> _Mirrored:
    return _Mirrored(session.log.id, session.position, session.info.state.retraction, list(items))


def _read_items(session: StoredSession, after: int) -> list[tuple[int, JsonValue]]:
    blocks = session.blocks(after=after)
    return [(one.position, item) for one in blocks if (item := one.item) is not None]


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
