"""Lets the sessions of an archive be restored into another namespace."""

from collections.abc import Iterator
from uuid import UUID

from ....domain.compaction import lineage_id
from ....domain.compaction_events import CompactionOpened
from ....domain.session import session_id
from ....domain.session_events import ParentNamed, SessionOpened
from ...storage.event_log.event_mapper import ZstdCompressor, dumps, loads, unpacked
from ...storage.event_log.keyed_hash import keyed_hash
from ...storage.event_log.recorder import AppendKey
from ...storage.event_log.stored_row import StoredRow
from .contents import Item, SessionBegins, StreamBegins, Subject

_NAMING = {one.TOPIC for one in (SessionOpened, ParentNamed, CompactionOpened)}
"""The events that name a namespace; all others are what they were, byte for byte."""


class Renaming:
    """The items of one archive as if its sessions had always been in another namespace.

    A subject that is named after a namespace, as those are that nobody named, goes along.
    """

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.was = ""
        self.key = ""
        self.ids: dict[UUID, UUID] = {}
        self.secrets: dict[str, bytes] = {}

    def renamed(self, items: Iterator[Item]) -> Iterator[Item]:
        for item in items:
            match item:
                case SessionBegins():
                    self.was, self.key = item.namespace, item.key
                    yield item._replace(namespace=self.namespace)
                case StreamBegins(id=id, lineage=lineage):
                    self.ids[id] = (
                        session_id(self.namespace, self.key)
                        if lineage is None
                        else lineage_id(self.namespace, self.key, lineage)
                    )
                    yield item._replace(id=self.ids[id])
                case Subject():
                    self.secrets[item.name] = item.secret
                    yield item._replace(name=self._subject(item.name))
                case StoredRow():
                    yield self._row(item)
                case AppendKey():
                    id = self.ids[item.originator_id]
                    yield AppendKey(id, item.key, item.first, item.last)
                case _:
                    yield item

    def _subject(self, name: str) -> str:
        own = name.startswith(f"{self.was}/")
        return f"{self.namespace}{name[len(self.was) :]}" if own else name

    def _row(self, row: StoredRow) -> StoredRow:
        moved = row._replace(
            originator_id=self.ids[row.originator_id], subject=self._subject(row.subject)
        )
        if row.topic not in _NAMING:
            return moved
        tree = loads(unpacked(row.state))
        for named in (tree, tree.get("fork"), tree.get("parent")):
            if named and "namespace" in named:
                named["namespace"] = self.namespace
        if base := tree.get("base"):
            base["originator_id"] = str(self.ids[UUID(base["originator_id"])])
        plaintext = dumps(tree)
        digest = keyed_hash(plaintext, self.secrets[row.subject], len(row.digest))
        is_packed = row.state[:4] == ZstdCompressor.MAGIC
        state = ZstdCompressor().compress(plaintext) if is_packed else plaintext
        return moved._replace(state=state, digest=digest)
