"""The vectors of klaude-code as sessions of cutbank: events, folded as they are when served."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from neutral_blocks import block_of, images_of, turn_of
from vector_files import Vector, lines_of

from cutbank.adapters.settings.policy_catalog import get_policy
from cutbank.domain.blocks import ToolCall, ToolResult
from cutbank.domain.compaction_events import CompactBoundary, Digest, Summary, Trigger
from cutbank.domain.digest import build_digest
from cutbank.domain.event import Event
from cutbank.domain.item import Item
from cutbank.domain.messages import group_messages
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import (
    BlockAppended,
    ModelCalled,
    ToolCalled,
    ToolReturned,
    Usage,
)
from cutbank.domain.settlement import find_split_turn
from cutbank.domain.summaries.klaude_template import KLAUDE_TEMPLATES, KlaudeTemplate
from cutbank.domain.summaries.summarizer import Material
from cutbank.domain.token_estimate import estimate_block, estimate_text
from cutbank.domain.window import Window
from cutbank.projections.compaction_window import make_window
from cutbank.projections.history_view import HistoryFold
from cutbank.projections.view_content import Coordinate, RecordedEvent

SYSTEMS: Mapping[str, str] = {"klaude_first": "as_shipped", "klaude": "later"}
"""Files of vectors, and the preset that answers as each of them."""

ENVELOPE: Mapping[str, Any] = {
    "originator_id": UUID(int=1),
    "originator_version": 1,
    "timestamp": datetime(2026, 1, 1, tzinfo=UTC),
    "subject": "vectors",
}


@dataclass(frozen=True)
class Case:
    """One vector, its log, and the policy that is to answer as the original did."""

    vector: Vector
    log: tuple[RecordedEvent, ...]
    at: Mapping[str, int]
    """The position of each neutral block."""
    policy: ReserveHeadroom
    window: Window

    @property
    def id(self) -> str:
        return str(self.vector["vector"])

    @property
    def expected(self) -> Mapping[str, Any]:
        expected: Mapping[str, Any] = self.vector["expected"]
        return expected

    @property
    def form(self) -> KlaudeTemplate:
        return KLAUDE_TEMPLATES[self.policy.form]

    def ids(self, items: Sequence[Item]) -> list[str]:
        """The neutral blocks of items; the images of a prompt are part of its block."""
        named = {position: name for name, position in self.at.items()}
        return [named[item.position] for item in items if item.position in named]

    def message_at(self, position: int) -> int:
        """The index of the message that holds a position, or of the next one."""
        lasts = [self.at[names[-1]] for names in self.expected["message_block_ids"]]
        return next((i for i, last in enumerate(lasts) if last >= position), 0)

    @property
    def whole(self) -> tuple[Item, ...]:
        """All that was ever said."""
        return tuple(sorted((*self.window.evicted, *self.window.items), key=_position))

    def count_tokens(self, items: Sequence[Item]) -> int:
        assert self.policy.estimator is not None
        return self.policy.estimator.count_message([item.block for item in items])

    @property
    def tokens_before(self) -> int:
        """The size of a session for its entry: the last report, or all messages so far."""
        if self.window.usage is not None:
            return self.window.usage
        return sum(self.count_tokens(message.items) for message in group_messages(self.whole))

    def material(self, first_kept: int) -> Material:
        """What leaves by a cut, legal or not."""
        window = self.window
        gone = tuple(item for item in window.open_to_cut if item.position < first_kept)
        covers = Ranges.of(item.position for item in gone)
        split = find_split_turn(window.items, first_kept, covers)
        previous, plan = window.summary, self.policy.plan(window)
        assert plan is not None, self.id
        return Material(
            removed_items=gone,
            covers=covers,
            budget=plan.summary_tokens,
            turn_budget=plan.turn_tokens,
            prefix=split.prefix if split else Ranges(),
            previous=previous.text if previous else None,
            digest=build_digest(
                gone,
                previous.digest if previous else Digest(),
                touches=self.form.find_touches,
                tracked=self.vector["config"]["tracked_files"],
            ),
            template=self.form,
        )

    def compacted(self, first_kept: int, summary: str) -> Window:
        """The window that follows on a cut, legal or not."""
        after = self.log[-1].position
        boundary = drawn(first_kept, after)
        written = summary_event(summary, Digest(), Ranges.span(1, first_kept - 1))
        return seen(self.log, boundary, written, self.window.limit)


def cases(which: str, file: str) -> Iterator[Case]:
    """All vectors of a file, each under the preset that it is to be answered by."""
    for vector in lines_of(which, file):
        log, at = logged(vector["input"])
        config = vector["config"]
        settings = {
            "reserve_tokens": config["reserve_tokens"],
            "keep_tokens": config["keep_recent_tokens"],
            "summary_tokens": config["max_summary_tokens"],
        }
        if file == "klaude":
            settings["answer_tokens"] = config["max_tokens"]
        policy = get_policy(f"klaude-code@{SYSTEMS[file]}", **settings)
        assert isinstance(policy, ReserveHeadroom)
        boundary, summary = standing(vector["input"], at)
        window = seen(log, boundary, summary, config["context_limit"] or 0)
        yield Case(vector, log, at, policy, window)


def logged(
    neutral: Sequence[Mapping[str, Any]],
) -> tuple[tuple[RecordedEvent, ...], dict[str, int]]:
    """The blocks as events of one session; a summary is none, but keeps its place."""
    log: list[RecordedEvent] = []
    at: dict[str, int] = {}
    calls: dict[str, int] = {}
    position = 0
    for block in neutral:
        position += 1
        at[block["id"]] = position
        for event in _events(dict(block), position, calls):
            if log and log[-1].position == position:
                position += 1
            log.append(_recorded(event, position))
    return tuple(log), at


def standing(
    neutral: Sequence[Mapping[str, Any]], at: Mapping[str, int]
) -> tuple[CompactBoundary | None, Summary | None]:
    """The last of the summaries that a history holds, and where it keeps from."""
    for block in reversed(neutral):
        if block["kind"] == "summary":
            meta = block["meta"]
            first_kept = at[meta["first_kept_block"]]
            files = meta.get("details") or {}
            digest = Digest(
                read_files=tuple(files.get("read_files", ())),
                modified_files=tuple(files.get("modified_files", ())),
            )
            covers = Ranges.span(1, first_kept - 1)
            return drawn(first_kept, at[block["id"]]), summary_event(block["text"], digest, covers)
    return None, None


def drawn(first_kept: int, after: int) -> CompactBoundary:
    return CompactBoundary(
        **ENVELOPE,
        after=after,
        first_kept=first_kept,
        kept=Ranges.span(first_kept, after),
        trigger=Trigger.MANUAL,
        policy="reserve-headroom",
        pre_tokens=1,
        post_tokens=1,
    )


def summary_event(text: str, digest: Digest, covers: Ranges) -> Summary:
    return Summary(
        **ENVELOPE,
        boundary=1,
        text=text,
        digest=digest,
        covers=covers,
        summarizer="vectors",
        tokens=estimate_text(text),
    )


def seen(
    log: Sequence[RecordedEvent],
    boundary: CompactBoundary | None,
    summary: Summary | None,
    limit: int,
    trigger: Trigger = Trigger.MANUAL,
) -> Window:
    """The window of a log as it is served, and beside it what is served no more."""
    after = boundary.after if boundary else 0
    kept = boundary.kept if boundary else Ranges()
    history = HistoryFold(
        boundary, summary, effective_from=after, sees=lambda call: call.position > after
    )
    history.apply_all(entry for entry in log if entry.position > after or entry.position in kept)
    served = _window(history, limit, trigger)
    whole = _window(HistoryFold().apply_all(log), limit, trigger)
    standing = {item.position for item in served.items}
    evicted = tuple(item for item in whole.items if item.position not in standing)
    return replace(served, items=tuple(served.items), evicted=evicted)


def _window(history: HistoryFold, limit: int, trigger: Trigger) -> Window:
    coordinate = Coordinate(history.position, "main", 0)
    return make_window(history, history.make_view("s", "n", coordinate, None), limit, trigger)


def _events(block: dict[str, Any], position: int, calls: dict[str, int]) -> Iterator[Event]:
    if block["kind"] == "summary":
        return
    said, turn, meta = block_of(block), turn_of(block), block["meta"]
    if isinstance(said, ToolCall):
        calls[said.tool_call_id] = position
        yield ToolCalled(**ENVELOPE, block=said, turn=turn)
    elif isinstance(said, ToolResult):
        call = calls.get(said.tool_call_id, 0)
        yield ToolReturned(**ENVELOPE, block=said, turn=turn, call=call)
    else:
        yield BlockAppended(**ENVELOPE, block=said, turn=turn)
        for image in images_of(block):
            yield BlockAppended(**ENVELOPE, block=image, turn=turn)
    if "usage_context" in meta:
        yield ModelCalled(
            **ENVELOPE,
            call_id=block["id"],
            usage=Usage(input=meta["usage_context"]),
            stop_reason=meta["stop_reason"],
            position=position,
        )


def _recorded(event: Event, position: int) -> RecordedEvent:
    block = getattr(event, "block", None)
    return RecordedEvent(position, event, estimate_block(block) if block else 0, b"%d" % position)


def _position(item: Item) -> int:
    return item.position
