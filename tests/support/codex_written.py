"""Rollouts that are written, and the sessions that they become."""

import json
from pathlib import Path
from typing import Any

from codex_talk import THREAD, Rollout
from short_sessions import CutAt
from transcripts import import_file

from cutbank import SessionStore, StoredSession

__all__ = ["CutAt", "again", "imported", "items_of", "lines_of"]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def items_of(path: Path) -> list[dict[str, Any]]:
    return [line["payload"] for line in lines_of(path) if line["type"] == "response_item"]


def again(store: SessionStore, path: Path) -> StoredSession:
    report = import_file(store, path, namespace="again")
    assert report.errors == []
    assert report.unknown == {}
    (key,) = report.sessions
    return store.session(key, namespace="again", create=False)


def imported(store: SessionStore, path: Path, told: Rollout) -> StoredSession:
    path.write_bytes(told.raw())
    import_file(store, path)
    return store.session(THREAD, create=False)
