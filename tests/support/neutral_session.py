"""A vector's neutral blocks as a session's events, folded into the window that a policy is shown.

Shapes only: block `n` stands at position `100 * n`, and what comes with it right behind.
"""

from collections.abc import Callable, Iterable, Sequence

from made_events import ENVELOPE, make_boundary, make_summary
from neutral_blocks import Neutral, block_of, digest_of, images_of, turn_of

from cutbank import Ranges, ToolCall, ToolResult, Trigger, Usage, Window, WindowItem
from cutbank.domain.blocks import AnyBlock
from cutbank.domain.compaction_events import Digest
from cutbank.domain.compaction_terms import CompactionTerms
from cutbank.domain.event import Event
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.session_events import BlockAppended, ModelCalled, ToolCalled, ToolReturned
from cutbank.domain.token_estimate import estimate_block
from cutbank.projections.compaction_window import make_window
from cutbank.projections.history_view import HistoryFold
from cutbank.projections.view_content import Coordinate, RecordedEvent

ROOM = 100
"""Positions that a neutral block has for itself and for what comes with it."""


class NeutralSession:
    """What was said in a vector, and any view of it."""

    def __init__(self, blocks: list[Neutral]) -> None:
        self.blocks = blocks
        self._ids: list[str] = [block["id"] for block in blocks]

    def position(self, id: str) -> int:
        return ROOM * (self._ids.index(id) + 1)

    def id(self, position: int) -> str:
        """Of the neutral block that a position belongs to."""
        return self._ids[position // ROOM - 1]

    def ids(self, items: Iterable[WindowItem]) -> list[str]:
        return list(dict.fromkeys(self.id(item.position) for item in items))

    def positions(self, ids: Iterable[str]) -> Ranges:
        """All that stands for these blocks."""
        return Ranges((at, at + ROOM - 1) for at in map(self.position, ids))

    @property
    def last_summary(self) -> Neutral | None:
        return next((b for b in reversed(self.blocks) if b["kind"] == "summary"), None)

    def window(
        self,
        limit: int,
        trigger: Trigger = Trigger.MANUAL,
        *,
        behind: Neutral | None = None,
        kept_from: str | None = None,
        among: Callable[[Neutral], bool] = lambda _: True,
    ) -> Window:
        """The view of these blocks, summaries aside.

        `behind` is the summary that stands for what came before it, but for what was kept from
        `kept_from` on; None where nothing left yet.
        """
        log = self._log(among)
        if behind is None:
            return _serve(HistoryFold(), log, limit, trigger)
        after = self.position(behind["id"])
        begins = self.position(kept_from) if kept_from else after + 1
        history = _begin(after, begins, behind["text"], digest_of(behind))
        return _serve(history, [one for one in log if one.position >= begins], limit, trigger)

    def compacted(self, limit: int, first_kept: int, summary: str) -> Window:
        """The view that follows on a cut of all blocks, legal or not."""
        log = self._log()
        history = _begin(log[-1].position, first_kept, summary, Digest())
        seen = [one for one in log if one.position >= first_kept]
        return _serve(history, seen, limit, Trigger.MANUAL)

    def _log(self, among: Callable[[Neutral], bool] = lambda _: True) -> list[RecordedEvent]:
        said = [one for one in self.blocks if one["kind"] != "summary" and among(one)]
        return [recorded for block in said for recorded in self._events(block)]

    def _events(self, neutral: Neutral) -> list[RecordedEvent]:
        """A block, its images, and after the last of a message the call that it came from."""
        at, turn = self.position(neutral["id"]), turn_of(neutral)
        events = [self._block(block_of(neutral), turn, neutral)]
        events += [BlockAppended(**ENVELOPE, block=one, turn=turn) for one in images_of(neutral)]
        told = [
            RecordedEvent(at + n, event, _tokens(event), event.TOPIC.encode())
            for n, event in enumerate(events)
        ]
        meta, message = neutral["meta"], self._message(neutral)
        if "usage_context" in meta and message[-1] == neutral["id"]:
            called = ModelCalled(
                **ENVELOPE,
                call_id=neutral["id"],
                usage=Usage(input=meta["usage_context"], output=0),
                stop_reason=meta.get("stop_reason"),
                position=self.position(message[0]) - 1,
            )
            told.append(RecordedEvent(at + ROOM - 1, called, 0, b""))
        return told

    def _message(self, neutral: Neutral) -> list[str]:
        """Ids of the blocks that were said at once with this one."""
        group = neutral["meta"].get("group")
        same = [b["id"] for b in self.blocks if group and b["meta"].get("group") == group]
        return same or [neutral["id"]]

    def _block(self, block: AnyBlock, turn: int, neutral: Neutral) -> Event:
        if isinstance(block, ToolCall):
            return ToolCalled(**ENVELOPE, block=block, turn=turn)
        if isinstance(block, ToolResult):
            return ToolReturned(**ENVELOPE, block=block, turn=turn, call=self._call(neutral))
        return BlockAppended(**ENVELOPE, block=block, turn=turn)

    def _call(self, result: Neutral) -> int:
        """Where the call stands that a result answers; 1, where no block is, for an orphan."""
        before = self.blocks[: self._ids.index(result["id"])]
        name = result["tool_call_id"]
        calls = (b for b in reversed(before) if b["kind"] == "tool_call")
        return next((self.position(b["id"]) for b in calls if b["tool_call_id"] == name), 1)


def _tokens(event: Event) -> int:
    block: AnyBlock = event.block  # type: ignore[attr-defined]
    return estimate_block(block)


def _begin(after: int, begins: int, summary: str, digest: Digest) -> HistoryFold:
    """A view that begins with a summary, and with what was kept from `begins` on."""
    kept = Ranges.span(begins, after)
    return HistoryFold(
        make_boundary(after=after, first_kept=min(begins, after + 1), kept=kept),
        make_summary(text=summary, covers=Ranges.span(1, after) - kept, digest=digest),
        effective_from=after,
        sees=lambda call: call.position > after,
    )


def _serve(
    history: HistoryFold, log: Sequence[RecordedEvent], limit: int, trigger: Trigger
) -> Window:
    history.apply_all(log)
    coordinate = Coordinate(history.position, "main", 0)
    view = history.make_view("vector", "default", coordinate, None)
    return make_window(history, view, CompactionTerms(ReserveHeadroom(), limit, trigger))
