"""Reads what a store keeps of the files that were imported."""

from collections.abc import Iterator
from pathlib import Path

from cutbank import SessionStore, StoredSession
from cutbank.adapters.runtime.exporter import make_outgoing
from cutbank.adapters.storage.event_log.source_segments import (
    decompress_segment,
    list_digests,
    read_segments,
)
from cutbank.adapters.transcripts.formats.outgoing import OutgoingBlock


def kept_segments(store: SessionStore, path: Path, namespace: str = "default") -> list[bytes]:
    row = store.events.recorder.select_import(namespace, str(path.resolve()))
    assert row
    return list_digests(row.segments)


def kept_bytes(store: SessionStore, path: Path, namespace: str = "default") -> bytes:
    segments = kept_segments(store, path, namespace)
    return b"".join(read_segments(segments, store.events.recorder.select_segment))


def named_lines(session: StoredSession) -> Iterator[tuple[int, bytes]]:
    """Each line number that a block of the session names, with the bytes at its place."""
    select = session.log.events.recorder.select_segment
    segments: dict[str, bytes] = {}
    for part in make_outgoing(session, lineage="recorded").read_parts():
        origin = part.block.origin if isinstance(part, OutgoingBlock) else None
        if origin and origin.line and origin.segment and origin.span:
            if origin.segment not in segments:
                digest = bytes.fromhex(origin.segment)
                segments[origin.segment] = decompress_segment(digest, select(digest))
            yield origin.line, segments[origin.segment][slice(*origin.span)]
