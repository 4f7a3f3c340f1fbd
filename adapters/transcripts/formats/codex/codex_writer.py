"""Writes a session as a rollout that Codex resumes."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from .....domain.blocks import (
    UNSENT_KINDS,
    AnyBlock,
    Block,
    Kind,
    Origin,
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
    OutgoingEntry,
    OutgoingSession,
    get_block_time,
    get_time,
    group_outgoing_entries,
    to_iso,
)
from ..summary_mark import SUMMARY_MARK
from .compaction import HISTORY_FIELD
from .entries import FORMAT_NAME
from .items import restore_line
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
        self.rolled_back = 0
        """The position of the last rollback."""
        self.has_header = False
        self.is_bare = False
        """Whether items have no wrappers, as in the oldest versions."""
        self.has_compactions = False
        """Whether the log holds Codex's own compaction lines."""
        compactions: list[OutgoingCompaction] = []
        for part in outgoing.read_parts():
            if isinstance(part, OutgoingCompaction):
                compactions.append(part)
            elif isinstance(part, OutgoingBlock):
                self._look_ahead(part.position, part.block)
        self.retained = RetainedMessages(one for one in compactions if self._is_written(one))

    def _look_ahead(self, position: int, block: AnyBlock) -> None:
        match block:
            case Block(kind=Kind.NOTE, name=name, origin=Origin(format=format, entry=None)) if (
                format == FORMAT_NAME
            ):
                if name in ("compacted", "summary"):
                    self.has_compactions = True
                elif name == "thread_rolled_back":
                    self.rolled_back = position
                elif name == "session_meta" and not self.has_header:
                    self.has_header = True
                    self.is_bare = "payload" not in json.loads(block.text)

    def _is_written(self, compacted: OutgoingCompaction) -> bool:
        return not (self.has_compactions and compacted.boundary.policy == RECORDED_LINEAGE)

    def write_lines(self) -> Iterator[bytes]:
        outgoing = self.outgoing
        if not self.has_header:
            yield encode_line(make_session_meta(outgoing))
        for what, count in (
            ("branches", len(outgoing.forks)),
            ("definitions of tools", len(outgoing.tools)),
            ("settings of requests", len(outgoing.settings.keys() - {"model"})),
        ):
            if count:
                outgoing.count_loss(what, count)
        message: list[OutgoingBlock] = []
        for part in group_outgoing_entries(outgoing.read_parts(), FORMAT_NAME):
            if message and not _continues_message(message[0].block, part):
                yield from self._write_message(message)
                message = []
            match part:
                case OutgoingBlock():
                    if not part.is_retracted:
                        message.append(part)
                case OutgoingEntry():
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

    def _write_entry(self, entry: OutgoingEntry) -> Iterator[bytes]:
        said = [
            one
            for one in entry.outgoing_blocks
            if not one.is_retracted or one.position < self.rolled_back
        ]
        if not said:
            return
        if entry.raw is not None:
            self._note_raw_line(said[0].block)
            yield entry.raw.encode() + b"\n"
            return
        rest = entry.remainder or {}
        is_restated = rest.get("type") == HISTORY_FIELD
        if is_restated and not self.outgoing.is_view:
            self.retained.hold([*self.builder.build_items(said)], said)
            return
        blocks = [one.block for one in said]
        is_whole = not is_restated and len(said) == len(entry.outgoing_blocks)
        whole = restore_line(rest, blocks) if is_whole else None
        if whole is None:
            yield from self._write_message(said)
            return
        item = whole.get("payload", whole)
        for block in blocks:
            if isinstance(block, ToolCall):
                self.builder.note_original_call(block, item)
            elif isinstance(block, ToolResult):
                item["type"] = self.builder.required_output_type(block) or item["type"]
        self.retained.hold([item], said)
        yield from self._write_with_event(whole, blocks, str(whole.get("timestamp") or ""))

    def _note_raw_line(self, note: AnyBlock) -> None:
        """Update the thread's state from a raw line."""
        if isinstance(note, Block) and note.name in ("turn_context", "thread_name_updated"):
            payload = json.loads(note.text)["payload"]
            if note.name == "turn_context":
                self.model = payload.get("model") or self.model
            elif payload.get("thread_id") in (None, self.outgoing.key):
                self.title = payload.get("thread_name") or self.title

    def _write_message(self, said: Sequence[OutgoingBlock]) -> Iterator[bytes]:
        """Yield items of blocks from another format, or from cutbank."""
        if not said:
            return
        items = [*self.builder.build_items(said)]
        self.retained.hold(items, said)
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
        kinds = (Kind.USER, Kind.ASSISTANT)
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
        if not self._is_written(compacted):
            return
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
        for items, said in self.retained.find_kept(compacted.boundary):
            history += items or CodexItemBuilder(self.outgoing).build_items(said)
        payload = {"message": text, "replacement_history": history}
        yield encode_line(make_rollout_line("compacted", payload, time))
        yield encode_line(self.totals.report_remaining(boundary.post_tokens, time))
        yield encode_line(make_event("context_compacted", time))


def _continues_message(first: AnyBlock, part: object) -> bool:
    return (
        isinstance(part, OutgoingBlock)
        and first.message_id is not None
        and part.block.message_id == first.message_id
        and first.kind not in (Kind.TOOL_CALL, Kind.TOOL_RESULT, *UNSENT_KINDS)
    )


_WrittenMessage = tuple[list[JsonDict], Sequence[OutgoingBlock]]
"""The items of a message, and its blocks."""


class RetainedMessages:
    """The messages that a later compaction keeps."""

    def __init__(self, compactions: Iterable[OutgoingCompaction]) -> None:
        self._wanted: list[Ranges] = [Ranges()]
        for compacted in reversed([*compactions]):
            self._wanted.append(self._wanted[-1] | compacted.boundary.kept)
        self._messages: list[_WrittenMessage] = []

    def hold(self, items: list[JsonDict], said: Sequence[OutgoingBlock]) -> None:
        """Record written items with their blocks."""
        if items and _are_in(self._wanted[-1], said):
            self._messages.append((items, said))

    def find_kept(self, boundary: CompactBoundary) -> list[_WrittenMessage]:
        """Return kept messages in order; without items if the compaction shows other texts."""
        trims = {trim.position: trim for trim in boundary.trims}
        texts = {one.position: one.text for one in boundary.replacements}
        kept: list[_WrittenMessage] = []
        for items, said in self._messages:
            if _are_in(boundary.kept, said):
                shown = [_show_block(one, trims, texts) for one in said]
                kept.append((items, said) if shown == [*said] else ([], shown))
        self._wanted.pop()
        later = self._wanted[-1]
        self._messages = [message for message in self._messages if _are_in(later, message[1])]
        return kept


def _are_in(positions: Ranges, said: Sequence[OutgoingBlock]) -> bool:
    return bool(positions.runs) and any(one.position in positions for one in said)


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
