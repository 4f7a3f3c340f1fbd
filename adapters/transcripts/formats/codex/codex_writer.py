"""Writes a session as a rollout that Codex resumes."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from .....domain.blocks import UNSENT_KINDS, AnyBlock, Block, Kind, ToolCall, ToolResult
from .....domain.compaction import RECORDED_LINEAGE
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
    OutgoingPart,
    OutgoingSession,
    group_outgoing_entries,
)
from ..summary_mark import SUMMARY_MARK
from .compaction import HISTORY_FIELD
from .entries import FORMAT_NAME
from .item_builder import CodexItemBuilder
from .items import restore_line
from .rollout_lines import (
    TokenTotals,
    format_block_time,
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
        self.fresh = CodexItemBuilder(outgoing)
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
            self._look_ahead(part, compactions)
        self.retained = RetainedItems(one for one in compactions if self._is_written(one))

    def write_lines(self) -> Iterator[bytes]:
        held: list[OutgoingBlock] = []
        if not self.has_header:
            yield encode_line(make_session_meta(self.outgoing))
        self._count_unwritable()
        for part in group_outgoing_entries(self.outgoing.read_parts(), FORMAT_NAME):
            if held and not _continues_message(held, part):
                yield from self._write_new_items(held)
                held = []
            match part:
                case OutgoingBlock():
                    if not part.is_retracted:
                        held.append(part)
                case OutgoingEntry():
                    yield from self._write_entry(part)
                case OutgoingCall(call=call):
                    yield from self._write_call(call)
                case OutgoingCompaction():
                    yield from self._write_compaction(part)
        yield from self._write_new_items(held)
        yield from self._write_title()

    def _count_unwritable(self) -> None:
        outgoing = self.outgoing
        for what, count in (
            ("branches", len(outgoing.forks)),
            ("definitions of tools", len(outgoing.tools)),
            ("settings of requests", len(outgoing.settings.keys() - {"model"})),
        ):
            if count:
                outgoing.count_loss(what, count)

    def _look_ahead(self, part: OutgoingPart, compactions: list[OutgoingCompaction]) -> None:
        match part:
            case OutgoingCompaction():
                compactions.append(part)
            case OutgoingBlock(block=Block(kind=Kind.NOTE, name=name, origin=origin)) if (
                origin and origin.format == FORMAT_NAME and origin.entry is None
            ):
                if name in ("compacted", "summary"):
                    self.has_compactions = True
                elif name == "thread_rolled_back":
                    self.rolled_back = part.position
                elif name == "session_meta" and not self.has_header:
                    self.has_header = True
                    self.is_bare = "payload" not in json.loads(part.block.text)

    def _is_written(self, compacted: OutgoingCompaction) -> bool:
        return not (self.has_compactions and compacted.boundary.policy == RECORDED_LINEAGE)

    def _write_entry(self, entry: OutgoingEntry) -> Iterator[bytes]:
        said = [one for one in entry.outgoing_blocks if self._is_kept_later(one)]
        if not said:
            return
        if entry.raw is not None:
            self._note_raw_line(said[0].block)
            yield entry.raw.encode() + b"\n"
            return
        is_restated = entry.remainder is not None and entry.remainder.get("type") == HISTORY_FIELD
        if is_restated and not self.outgoing.is_view:
            self.retained.hold([*self.fresh.build_items(said)], said)
            return
        blocks = [one.block for one in said]
        whole = None
        if (
            entry.remainder is not None
            and not is_restated
            and len(said) == len(entry.outgoing_blocks)
        ):
            whole = restore_line(entry.remainder, blocks)
        if whole is None:
            yield from self._write_new_items(said)
            return
        item = whole.get("payload", whole)
        for block in blocks:
            if isinstance(block, ToolCall):
                self.fresh.note_original_call(block, item)
            elif isinstance(block, ToolResult) and (
                answer := self.fresh.required_output_type(block)
            ):
                item["type"] = answer
        self.retained.hold([item], said)
        yield from self._write_with_event(whole, blocks, str(whole.get("timestamp") or ""))

    def _is_kept_later(self, said: OutgoingBlock) -> bool:
        return not said.is_retracted or said.position < self.rolled_back

    def _note_raw_line(self, note: AnyBlock) -> None:
        """Update the thread's state from a raw line."""
        if isinstance(note, Block) and note.name in ("turn_context", "thread_name_updated"):
            payload = json.loads(note.text)["payload"]
            if note.name == "turn_context":
                self.model = payload.get("model") or self.model
            elif payload.get("thread_id") in (None, self.outgoing.key):
                self.title = payload.get("thread_name") or self.title

    def _write_new_items(self, said: Sequence[OutgoingBlock]) -> Iterator[bytes]:
        """Yield items of blocks from another format, or from cutbank."""
        if not said:
            return
        items = [*self.fresh.build_items(said)]
        self.retained.hold(items, said)
        time = _block_time(said[0])
        if items and self.model is None and self.outgoing.model and not self.is_bare:
            self.model = self.outgoing.model
            yield encode_line(make_turn_context(self.model, time))
        for item in items:
            whole = item if self.is_bare else make_rollout_line("response_item", item, time)
            yield from self._write_with_event(whole, [one.block for one in said], time)

    def _write_with_event(
        self, whole: JsonDict, blocks: Sequence[AnyBlock], time: str
    ) -> Iterator[bytes]:
        """Yield a line, and the event that shows it to the user."""
        yield encode_line(whole)
        if self.is_bare:
            return
        item = whole.get("payload", whole)
        if item.get("type") != "message":
            return
        words = [block.text for block in blocks if block.kind in (Kind.USER, Kind.ASSISTANT)]
        text = "\n".join(word for word in words if word)
        if text and item.get("role") == "user":
            yield encode_line(make_event("user_message", time, message=text, images=[]))
        elif text and item.get("role") == "assistant":
            yield encode_line(make_event("agent_message", time, message=text))

    def _write_call(self, call: ModelCalled) -> Iterator[bytes]:
        if call.cost_usd is not None:
            self.outgoing.count_loss("costs of calls")
        if self.is_bare or call.usage is None:
            self.outgoing.count_loss("calls without usage")
            return
        time = format_block_time(call.timestamp, call.source_time)
        if call.model and call.model != self.model:
            self.model = call.model
            yield encode_line(make_turn_context(call.model, time))
        yield encode_line(self.totals.add_call(call.usage, time, call.context_window))

    def _write_compaction(self, compacted: OutgoingCompaction) -> Iterator[bytes]:
        if not self._is_written(compacted):
            return
        boundary, summary = compacted.boundary, compacted.summary
        time = format_block_time(compacted.time, boundary.source_time)
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
        for items, said in self.retained.find_kept(compacted):
            history += (
                CodexItemBuilder(replace(self.outgoing)).build_items(said)
                if items is None
                else items
            )
        payload = {"message": text, "replacement_history": history}
        yield encode_line(make_rollout_line("compacted", payload, time))
        yield encode_line(self.totals.report_remaining(boundary.post_tokens, time))
        yield encode_line(make_event("context_compacted", time))

    def _write_title(self) -> Iterator[bytes]:
        title = self.outgoing.title
        if title and title != self.title and not self.is_bare:
            thread = make_thread_id(self.outgoing.key)
            time = format_block_time(self.outgoing.opened_at)
            named: JsonDict = {"thread_id": thread, "thread_name": title}
            yield encode_line(make_event("thread_name_updated", time, **named))


def _continues_message(
    held: list[OutgoingBlock],
    part: OutgoingEntry | OutgoingBlock | OutgoingCall | OutgoingCompaction,
) -> bool:
    name = held[0].block.message_id
    return (
        isinstance(part, OutgoingBlock)
        and name is not None
        and part.block.message_id == name
        and held[0].block.kind not in (Kind.TOOL_CALL, Kind.TOOL_RESULT, *UNSENT_KINDS)
    )


def _block_time(said: OutgoingBlock) -> str:
    origin = said.block.origin
    recorded: datetime = said.time
    return format_block_time(recorded, origin.time if origin else None)


_WrittenItems = tuple[list[JsonDict], Sequence[OutgoingBlock]]


class RetainedItems:
    """The items that a later compaction keeps."""

    def __init__(self, compactions: Iterable[OutgoingCompaction]) -> None:
        self._wanted: list[Ranges] = [Ranges()]
        for compacted in reversed([*compactions]):
            self._wanted.append(self._wanted[-1] | compacted.boundary.kept)
        self._held: dict[int, _WrittenItems] = {}

    def hold(self, items: list[JsonDict], said: Sequence[OutgoingBlock]) -> None:
        """Record written items with their blocks."""
        wanted = self._wanted[-1]
        for one in said:
            if wanted.runs and one.position in wanted:
                self._held[one.position] = items, said

    def find_kept(
        self, compacted: OutgoingCompaction
    ) -> list[tuple[list[JsonDict] | None, Sequence[OutgoingBlock]]]:
        """Return kept items in order; None for blocks that the compaction shows in another form."""
        boundary = compacted.boundary
        instead = {one.position: one.text for one in boundary.replacements}
        trims = {one.position: one for one in boundary.trims}
        found: list[tuple[list[JsonDict] | None, Sequence[OutgoingBlock]]] = []
        seen: set[int] = set()
        for position in sorted(self._held):
            if position not in boundary.kept or position in seen:
                continue
            items, said = self._held[position]
            seen.update(one.position for one in said)
            shown = {
                one.position: instead.get(one.position)
                or trim_text(one.block.text, trims[one.position])
                for one in said
                if one.position in instead or one.position in trims
            }
            if shown:
                said = [
                    replace(one, block=_replace_text(one.block, shown[one.position]))
                    if one.position in shown
                    else one
                    for one in said
                ]
            found.append((None if shown else items, said))
        self._wanted.pop()
        later = self._wanted[-1]
        self._held = {at: held for at, held in self._held.items() if at in later}
        return found


def _replace_text(block: AnyBlock, text: str) -> AnyBlock:
    match block:
        case ToolCall():
            return block  # its answer names it, so it stays unchanged
        case ToolResult():
            return block.model_copy(update={"content": text, "native": None})
        case Block():
            return block.model_copy(update={"text": text, "media": None, "native": None})
