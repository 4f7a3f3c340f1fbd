"""Writes a session as a rollout that Codex resumes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from .....domain.blocks import (
    UNSENT_KINDS,
    AnyBlock,
    BlockKind,
    ToolCall,
    ToolResult,
)
from .....domain.compaction import RECORDED_LINEAGE
from .....domain.compaction_events import CompactBoundary, Trim
from .....domain.ranges import Ranges
from .....domain.session_events import ModelCalled
from .....domain.trims import trim_text
from .....projections.rendering import summary_message
from ..fields import JsonDict
from ..json_lines import encode_line
from ..outgoing import (
    OutgoingBlock,
    OutgoingCall,
    OutgoingCompaction,
    OutgoingSession,
    OwnBlock,
    SourceEntry,
    get_block_time,
    get_time,
    merge_with_source,
    to_iso,
)
from ..summary_mark import SUMMARY_MARK
from .compaction import HISTORY_FIELD
from .line_builder import (
    CodexItemBuilder,
    TokenTotals,
    make_event,
    make_rollout_line,
    make_session_meta,
    make_thread_id,
    make_turn_context,
)


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    return RolloutWriter(outgoing).write_lines()


class RolloutWriter:
    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.builder = CodexItemBuilder(outgoing)
        self.totals = TokenTotals()
        self.model: str | None = None
        """The model of the last turn context."""
        self.title: str | None = None
        """The thread name in the last event."""
        self.is_bare: bool | None = None
        """Whether items have no wrappers, as in the oldest versions; None before any line."""
        self.retained = RetainedMessages(outgoing)

    def write_lines(self) -> Iterator[bytes]:
        outgoing = self.outgoing
        if not outgoing.kept_source:
            yield encode_line(make_session_meta(outgoing))
        for what, count in (
            ("branches", len(outgoing.forks)),
            ("definitions of tools", len(outgoing.tools)),
            ("settings of requests", len(outgoing.settings.keys() - {"model"})),
        ):
            if count:
                outgoing.count_loss(what, count)
        message: list[OutgoingBlock] = []
        for part in merge_with_source(outgoing):
            if message and not _continues_message(message[0].block, part):
                yield from self._write_message(message)
                message = []
            match part:
                case OutgoingBlock():
                    if not (part.is_retracted or part.is_cancelled_result):
                        message.append(part)
                case SourceEntry():
                    yield from self._write_entry(part)
                case OutgoingCall(call=call):
                    yield from self._write_call(call)
                case OutgoingCompaction():
                    yield from self._write_compaction(part)
        yield from self._write_message(message)
        if outgoing.title and outgoing.title != self.title and not self.is_bare:
            named = {"thread_id": make_thread_id(outgoing.key), "thread_name": outgoing.title}
            time = to_iso(outgoing.opened_at)
            yield encode_line(make_event("thread_name_updated", time, **named))

    def _write_entry(self, entry: SourceEntry) -> Iterator[bytes]:
        """Yield a line of the source, unless its blocks were retracted since."""
        if entry.own_blocks and all(one.is_removed for one in entry.own_blocks):
            return
        yield entry.raw
        line = entry.value
        if not isinstance(line, dict):
            return
        if self.is_bare is None:
            self.is_bare = "payload" not in line
        item = line.get("payload", line)
        if not isinstance(item, dict):
            return
        match line:
            case {"type": "turn_context"}:
                self.model = item.get("model") or self.model
            case {"type": "event_msg", "payload": {"type": "thread_name_updated"}}:
                if item.get("thread_id") in (None, self.outgoing.key):
                    self.title = item.get("thread_name") or self.title
            case {"type": "compacted"}:
                self.retained.hold_restated(entry.own_blocks)
            case _ if sent := [one for one in entry.own_blocks if not one.is_note]:
                for one in sent:
                    if one.tool_call_id:
                        self.builder.note_original_call(one.tool_call_id, item)
                self.retained.hold([item], [one.position for one in sent])

    def _write_message(self, said: Sequence[OutgoingBlock]) -> Iterator[bytes]:
        """Yield items of blocks from another format, or from cutbank."""
        if not said:
            return
        items = [*self.builder.build_items(said)]
        self.retained.hold(items, [one.position for one in said])
        time = to_iso(get_block_time(said[0]))
        if items and self.model is None and self.outgoing.model and not self.is_bare:
            yield self._name_model(self.outgoing.model, time)
        for item in items:
            whole = item if self.is_bare else make_rollout_line("response_item", item, time)
            yield from self._write_with_event(whole, [one.block for one in said], time)

    def _name_model(self, model: str, time: str) -> bytes:
        self.model = model
        return encode_line(make_turn_context(model, time))

    def _write_with_event(
        self, whole: JsonDict, blocks: Sequence[AnyBlock], time: str
    ) -> Iterator[bytes]:
        """Yield a line, and the event that shows it to the user."""
        yield encode_line(whole)
        if self.is_bare:
            return
        item = whole.get("payload", whole)
        kinds = (BlockKind.USER, BlockKind.ASSISTANT)
        text = "\n".join(block.text for block in blocks if block.kind in kinds and block.text)
        if item.get("type") != "message" or not text:
            return
        if item.get("role") == "user":
            yield encode_line(make_event("user_message", time, message=text, images=[]))
        elif item.get("role") == "assistant":
            yield encode_line(make_event("agent_message", time, message=text))

    def _write_call(self, call: ModelCalled) -> Iterator[bytes]:
        if call.cost_usd is not None:
            self.outgoing.count_loss("costs of calls")
        if self.is_bare or call.usage is None:
            self.outgoing.count_loss("calls without usage")
            return
        time = to_iso(get_time(call.timestamp, call.source_time))
        if call.model and call.model != self.model:
            yield self._name_model(call.model, time)
        yield encode_line(self.totals.add_call(call.usage, time, call.context_window))

    def _write_compaction(self, compacted: OutgoingCompaction) -> Iterator[bytes]:
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
        if self.is_bare:
            yield from (encode_line(item) for item in history)
            return
        history += self.retained.find_kept(compacted.boundary)
        payload = {"message": text, "replacement_history": history}
        yield encode_line(make_rollout_line("compacted", payload, time))
        yield encode_line(self.totals.report_remaining(boundary.post_tokens, time))
        yield encode_line(make_event("context_compacted", time))


def _continues_message(first: AnyBlock, part: object) -> bool:
    return (
        isinstance(part, OutgoingBlock)
        and first.message_id is not None
        and part.block.message_id == first.message_id
        and first.kind not in (BlockKind.TOOL_CALL, BlockKind.TOOL_RESULT, *UNSENT_KINDS)
    )


class RetainedMessages:
    """The items that a later compaction keeps."""

    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        boundaries: list[CompactBoundary] = []
        self._blocks: dict[int, OutgoingBlock] = {}
        """The blocks that a compaction shows otherwise, or that only a compaction holds."""
        for part in outgoing.read_parts():
            match part:
                case OutgoingCompaction(boundary=boundary):
                    if not outgoing.kept_source or boundary.policy != RECORDED_LINEAGE:
                        boundaries.append(boundary)
                case OutgoingBlock(position=position, block=block):
                    origin = block.origin
                    if origin and (origin.id or "").startswith(HISTORY_FIELD):
                        self._blocks[position] = part
        self._wanted: list[Ranges] = [Ranges()]
        for boundary in reversed(boundaries):
            self._wanted.append(self._wanted[-1] | boundary.kept)
        changed = {trim.position for one in boundaries for trim in one.trims}
        changed |= {shown.position for one in boundaries for shown in one.replacements}
        if changed:
            for part in outgoing.read_parts():
                if isinstance(part, OutgoingBlock) and part.position in changed:
                    self._blocks[part.position] = part
        self._messages: list[tuple[list[JsonDict], list[int]]] = []

    def hold(self, items: list[JsonDict], positions: list[int]) -> None:
        """Record written items, and the positions of their blocks."""
        if items and _are_in(self._wanted[-1], positions):
            self._messages.append((items, positions))

    def hold_restated(self, own: Sequence[OwnBlock]) -> None:
        """Record the items that a compaction of the source added to the context."""
        for one in own:
            if said := self._blocks.get(one.position):
                self.hold([*CodexItemBuilder(self.outgoing).build_items([said])], [one.position])

    def find_kept(self, boundary: CompactBoundary) -> list[JsonDict]:
        """Return the items of kept messages in order, as the compaction shows them."""
        trims = {trim.position: trim for trim in boundary.trims}
        texts = {one.position: one.text for one in boundary.replacements}
        kept: list[JsonDict] = []
        for items, positions in self._messages:
            if not _are_in(boundary.kept, positions):
                continue
            blocks = [self._blocks[at] for at in positions if at in self._blocks]
            if len(blocks) == len(positions) and any(
                at in trims or at in texts for at in positions
            ):
                shown = [_show_block(one, trims, texts) for one in blocks]
                kept += CodexItemBuilder(self.outgoing).build_items(shown)
            else:
                kept += items
        self._wanted.pop()
        later = self._wanted[-1]
        self._messages = [one for one in self._messages if _are_in(later, one[1])]
        return kept


def _are_in(positions: Ranges, wanted: Iterable[int]) -> bool:
    return bool(positions.runs) and any(one in positions for one in wanted)


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
