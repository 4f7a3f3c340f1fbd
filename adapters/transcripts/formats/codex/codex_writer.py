"""Writes a session as a rollout that Codex resumes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .....domain.blocks import ToolCall, ToolResult
from .....domain.compaction_events import CompactBoundary, Trim
from .....domain.ranges import Ranges
from .....domain.session_events import ModelCalled
from .....domain.trims import trim_text
from .....projections.rendering import summary_message
from ..fields import JsonDict
from ..line_writer import LineWriter, OwnBlock
from ..outgoing import (
    OutgoingBlock,
    OutgoingCompaction,
    OutgoingMessage,
    OutgoingSession,
    get_block_time,
    get_time,
    group_outgoing_messages,
    is_added,
    to_iso,
)
from ..summary_mark import SUMMARY_MARK
from .line_builder import (
    CodexItemBuilder,
    TokenTotals,
    make_event,
    make_message_event,
    make_rollout_line,
    make_session_meta,
    make_thread_id,
    make_turn_context,
)


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    outgoing.count_missing(holds_prompt=True)
    return RolloutWriter(outgoing).write()


class RolloutWriter(LineWriter):
    def __init__(self, outgoing: OutgoingSession) -> None:
        super().__init__(outgoing)
        self.builder = CodexItemBuilder(outgoing)
        self.totals = TokenTotals()
        self.model: str | None = None
        """The model of the last turn context."""
        self.kept_blocks = {} if outgoing.is_view else _find_kept_blocks(outgoing)

    def begin(self) -> Iterator[JsonDict]:
        yield make_session_meta(self.outgoing)

    def build_title(self, title: str) -> Iterator[JsonDict]:
        time = to_iso(self.outgoing.opened_at)
        named = {"thread_id": make_thread_id(self.outgoing.key), "thread_name": title}
        yield make_event("thread_name_updated", time, **named)

    def follow(self, entry: JsonDict, own: Sequence[OwnBlock]) -> None:
        match entry:
            case {"type": "turn_context", "payload": {"model": str(model)}}:
                self.model = model
            case {
                "type": "event_msg",
                "payload": {"type": "thread_name_updated", "thread_name": str(title)} as named,
            } if named.get("thread_id") in (None, self.outgoing.key):
                self.title = title
        for one in own:
            if one.tool_call_id:
                self.builder.note_original_call(one.tool_call_id, entry.get("payload", entry))

    def build_message(self, message: OutgoingMessage) -> Iterator[JsonDict]:
        """Yield the items of a message, each with the event that shows it, and the call's usage."""
        time = to_iso(get_block_time(message.outgoing_blocks[0]))
        items = [*self.builder.build_items(message.outgoing_blocks)]
        model = message.call.model if message.call else None
        if (model or self.model is None) and items:
            yield from self._name_model(model or self.outgoing.model, time)
        for item in items:
            yield make_rollout_line("response_item", item, time)
            yield from make_message_event(item, time)
        if message.call:
            yield from self._count_tokens(message.call)

    def _name_model(self, model: str | None, time: str) -> Iterator[JsonDict]:
        if model and model != self.model:
            self.model = model
            yield make_turn_context(self.outgoing.folder, model, time)

    def _count_tokens(self, call: ModelCalled) -> Iterator[JsonDict]:
        self.outgoing.count_loss("costs of calls", call.cost_usd is not None)
        self.outgoing.count_loss("calls without usage", call.usage is None)
        if call.usage:
            time = to_iso(get_time(call.timestamp, call.source_time))
            yield self.totals.add_call(call.usage, time, call.context_window)

    def build_compaction(self, compacted: OutgoingCompaction) -> Iterator[JsonDict]:
        boundary, summary = compacted.boundary, compacted.summary
        time = to_iso(get_time(compacted.time, boundary.source_time))
        history: list[JsonDict] = []
        text = ""
        if summary:
            text = summary_message.wrap_summary(summary.text, summary.covers, boundary.hidden)
            content = [{"type": "input_text", "text": text, **SUMMARY_MARK}]
            history.append({"type": "message", "role": "user", "content": content})
        elif self.outgoing.is_view:
            return  # nothing replaces what left
        payload = {"message": text, "replacement_history": [*history, *self._build_kept(boundary)]}
        yield make_rollout_line("compacted", payload, time)
        yield self.totals.report_remaining(boundary.post_tokens, time)
        yield make_event("context_compacted", time)

    def _build_kept(self, boundary: CompactBoundary) -> Iterator[JsonDict]:
        """Yield the items of the kept blocks, as the compaction shows them."""
        trims = {trim.position: trim for trim in boundary.trims}
        texts = {one.position: one.text for one in boundary.replacements}
        shown = [
            _show_block(said, trims, texts)
            for position, said in self.kept_blocks.items()
            if position in boundary.kept
        ]
        again = replace(self.outgoing, losses=Counter())  # their losses were counted before
        builder = CodexItemBuilder(again)
        for message in group_outgoing_messages(again, shown):
            if isinstance(message, OutgoingMessage):
                yield from builder.build_items(message.outgoing_blocks)


def _find_kept_blocks(outgoing: OutgoingSession) -> dict[int, OutgoingBlock]:
    """Return the blocks that compactions to be written keep, by position."""
    wanted = Ranges()
    for part in outgoing.read_parts():
        if isinstance(part, OutgoingCompaction) and (
            not outgoing.kept_source or is_added(outgoing, part)
        ):
            wanted |= part.boundary.kept
    parts = outgoing.read_parts() if wanted.runs else ()
    blocks = (part for part in parts if isinstance(part, OutgoingBlock))
    return {part.position: part for part in blocks if part.position in wanted}


def _show_block(
    said: OutgoingBlock, trims: Mapping[int, Trim], texts: Mapping[int, str]
) -> OutgoingBlock:
    """Return the block as the compaction shows it."""
    at, block = said.position, said.block
    text = texts.get(at) or (trim_text(block.text, trims[at]) if at in trims else None)
    if text is None or isinstance(block, ToolCall):
        return said  # a call's answer names it, so it stays unchanged
    if isinstance(block, ToolResult):
        return replace(said, block=block.model_copy(update={"content": text, "native": None}))
    update = {"text": text, "media": None, "native": None}
    return replace(said, block=block.model_copy(update=update))
