"""Restores the sessions of an archive into another namespace."""

from collections.abc import Iterator
from uuid import UUID

from ....domain.compaction import derive_lineage_id
from ....domain.compaction_events import CompactionOpened
from ....domain.session import derive_session_id
from ....domain.session_events import ParentNamed, SessionOpened
from ...storage.event_log.event_mapper import ZstdCompressor, decompress_any, dump_json, load_json
from ...storage.event_log.stored_row import AppendKey, StoredRow, compute_keyed_hash
from .archive_reader import ArchiveItem, SessionHeader, StreamHeader, SubjectSecret

_NAMING_TOPICS = {one.TOPIC for one in (SessionOpened, ParentNamed, CompactionOpened)}
"""The events that name a namespace; all others stay the same, byte for byte."""


class NamespaceRenaming:
    """Rewrites the items of one archive as if its sessions had always been in `namespace`.

    Default subjects, which are named after the namespace, are renamed too.
    """

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.was = ""
        self.key = ""
        self.ids: dict[UUID, UUID] = {}
        self.secrets: dict[str, bytes] = {}

    def rename_items(self, items: Iterator[ArchiveItem]) -> Iterator[ArchiveItem]:
        for item in items:
            match item:
                case SessionHeader():
                    self.was, self.key = item.namespace, item.key
                    yield item._replace(namespace=self.namespace)
                case StreamHeader(id=id, lineage=lineage):
                    self.ids[id] = (
                        derive_session_id(self.namespace, self.key)
                        if lineage is None
                        else derive_lineage_id(self.namespace, self.key, lineage)
                    )
                    yield item._replace(id=self.ids[id])
                case SubjectSecret():
                    self.secrets[item.name] = item.secret
                    yield item._replace(name=self._rename_subject(item.name))
                case StoredRow():
                    yield self._rename_row(item)
                case AppendKey():
                    id = self.ids[item.originator_id]
                    yield AppendKey(id, item.key, item.first, item.last)
                case _:
                    yield item

    def _rename_subject(self, name: str) -> str:
        own = name.startswith(f"{self.was}/")
        return f"{self.namespace}{name[len(self.was) :]}" if own else name

    def _rename_row(self, row: StoredRow) -> StoredRow:
        moved = row._replace(
            originator_id=self.ids[row.originator_id], subject=self._rename_subject(row.subject)
        )
        if row.topic not in _NAMING_TOPICS:
            return moved
        tree = load_json(decompress_any(row.state))
        for named in (tree, tree.get("fork"), tree.get("parent")):
            if named and "namespace" in named:
                named["namespace"] = self.namespace
        if base := tree.get("base"):
            base["originator_id"] = str(self.ids[UUID(base["originator_id"])])
        plaintext = dump_json(tree)
        digest = compute_keyed_hash(plaintext, self.secrets[row.subject], len(row.digest))
        is_packed = row.state[:4] == ZstdCompressor.MAGIC
        state = ZstdCompressor().compress(plaintext) if is_packed else plaintext
        return moved._replace(state=state, digest=digest)
