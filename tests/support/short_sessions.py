"""Sessions of a few questions, and what is looked at of them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from databases import asked

from cutbank import (
    Block,
    CompactionOptions,
    HistoryView,
    SessionStore,
    StoredSession,
    ToolCall,
    ToolResult,
)
from cutbank.adapters.runtime.compaction.outcome import CompactionOutcome
from cutbank.domain.compaction_events import Trim
from cutbank.domain.ranges import Ranges
from cutbank.domain.window import Plan, Window


@dataclass(frozen=True)
class CutAt:
    """A policy that cuts, and shortens a result, where the test says."""

    name: ClassVar[str] = "cut-at"

    cut: int
    shortened: int | None = None

    def plan(self, _: Window) -> Plan | None:
        trims = (Trim(position=self.shortened, head=10, tail=5),) if self.shortened else ()
        return Plan(cut=self.cut, reason="the test wants it", summary_tokens=500, trims=trims)


@dataclass(frozen=True)
class Prunes:
    """A policy that drops, and shortens, the blocks that the test names."""

    name: ClassVar[str] = "prunes"

    drops: str = ""
    shortens: str = ""

    def plan(self, _: Window) -> Plan | None:
        trims = tuple(Trim(position=int(at), head=100, tail=20) for at in self.shortens.split())
        return Plan(None, "the test wants it", 0, trims, Ranges.of(map(int, self.drops.split())))


def prunes(*drops: int) -> Prunes:
    return Prunes(drops=" ".join(map(str, drops)))


def shortens(position: int) -> Prunes:
    return Prunes(shortens=str(position))


def said(text: str) -> Block:
    """A user's words, so many that a summary of them is shorter."""
    return Block.user(f"{text} " * 200)


def call(name: str) -> ToolCall:
    return ToolCall(tool_call_id=name, name="read", arguments={"path": f"{name}.py"})


def result(name: str, content: str = "done") -> ToolResult:
    return ToolResult(tool_call_id=name, content=content)


def words(view: HistoryView) -> list[str]:
    return [entry.text.split(maxsplit=1)[0] for entry in view.entries]


def positions(view: HistoryView) -> list[int]:
    return [entry.position for entry in view.entries]


def number_of_rows(store: SessionStore) -> dict[str, int]:
    return {
        table: asked(store, f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608
        for table in ("stored_events", "bodies", "append_keys", "streams")
    }


def compacted(session: StoredSession, cut: int, **more: Any) -> CompactionOutcome:
    outcome = session.compact(CutAt(cut), options=CompactionOptions(**more))
    assert outcome.compacted
    return outcome
