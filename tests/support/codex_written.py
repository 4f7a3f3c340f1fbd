"""What a session says that was written as a rollout, and what the rollout does."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from codex_talk import THREAD, Rollout
from transcripts import import_file

from cutbank import SessionStore, StoredSession
from cutbank.domain.compaction_events import Trim
from cutbank.domain.window import Plan, Window


@dataclass(frozen=True)
class CutAt:
    """A policy that cuts, and shortens, where the test says."""

    name: ClassVar[str] = "cut-at"

    cut: int
    shortened: int | None = None

    def plan(self, _: Window) -> Plan | None:
        trims = (Trim(position=self.shortened, head=10, tail=5),) if self.shortened else ()
        return Plan(cut=self.cut, reason="wanted", summary_tokens=500, trims=trims)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def items_of(path: Path) -> list[dict[str, Any]]:
    return [line["payload"] for line in lines_of(path) if line["type"] == "response_item"]


def again(store: SessionStore, path: Path) -> StoredSession:
    """What was written, imported anew."""
    report = import_file(store, path, namespace="again")
    assert report.errors == []
    assert report.unknown == {}
    (key,) = report.sessions
    return store.session(key, namespace="again", create=False)


def said(session: StoredSession) -> list[tuple[str, str, str | None]]:
    """What is in the view: kinds, texts, and which call is which."""
    return [
        (entry.block.kind.value, entry.text, getattr(entry.block, "tool_call_id", None))
        for entry in session.view().entries
    ]


def imported(store: SessionStore, path: Path, told: Rollout) -> StoredSession:
    path.write_bytes(told.raw())
    import_file(store, path)
    return store.session(THREAD, create=False)
