"""Writes a session as a rollout that Codex resumes."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from .....domain.blocks import NOT_SENT, AnyBlock, Block, Kind, ToolCall, ToolResult
from .....domain.compaction import RECORDED
from .....domain.session_events import ModelCalled
from .....projections.rendering import summary_message
from ..outgoing import Called, Compacted, Entry, Outgoing, Part, Said, entries
from ..reading.fields import Item
from ..summary_mark import MARK
from .compaction import RESTATED
from .entries import NAME
from .fresh import Fresh
from .lines import Totals, encoded, event, line, session_meta, thread_id, time_of, turn_context
from .restored import restored
from .retained import Retained


def write(outgoing: Outgoing) -> Iterator[bytes]:
    """The rollout, line by line."""
    return Rollout(outgoing).lines()


class Rollout:
    """A rollout that is being written."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.fresh = Fresh(outgoing)
        self.totals = Totals()
        self.model: str | None = None
        """What the last turn context named."""
        self.title: str | None = None
        """What the last event named the thread."""
        self.rolled_back = 0
        """Where the last rollback stands: what precedes it was said, though it was taken back."""
        self.has_header = False
        self.is_bare = False
        """Written as the oldest versions did: items with nothing wrapped around them."""
        self.has_compactions = False
        """Compactions of Codex's own are in the log as the lines that they were."""
        compactions: list[Compacted] = []
        for part in outgoing.parts():
            self._look_ahead(part, compactions)
        self.retained = Retained(one for one in compactions if self._is_written(one))

    def lines(self) -> Iterator[bytes]:
        held: list[Said] = []
        if not self.has_header:
            yield encoded(session_meta(self.outgoing))
        self._lose_what_has_no_line()
        for part in entries(self.outgoing.parts(), NAME):
            if held and not _goes_on(held, part):
                yield from self._anew(held)
                held = []
            match part:
                case Said():
                    if not part.retracted:
                        held.append(part)
                case Entry():
                    yield from self._entry(part)
                case Called(call=call):
                    yield from self._called(call)
                case Compacted():
                    yield from self._compacted(part)
        yield from self._anew(held)
        yield from self._titled()

    def _lose_what_has_no_line(self) -> None:
        outgoing = self.outgoing
        for what, count in (
            ("branches", len(outgoing.forks)),
            ("definitions of tools", len(outgoing.tools)),
            ("settings of requests", len(outgoing.settings.keys() - {"model"})),
        ):
            if count:
                outgoing.lose(what, count)

    def _look_ahead(self, part: Part, compactions: list[Compacted]) -> None:
        match part:
            case Compacted():
                compactions.append(part)
            case Said(block=Block(kind=Kind.NOTE, name=name, origin=origin)) if (
                origin and origin.format == NAME and origin.entry is None
            ):
                if name in ("compacted", "summary"):
                    self.has_compactions = True
                elif name == "thread_rolled_back":
                    self.rolled_back = part.position
                elif name == "session_meta" and not self.has_header:
                    self.has_header = True
                    self.is_bare = "payload" not in json.loads(part.block.text)
            case _:
                pass

    def _is_written(self, compacted: Compacted) -> bool:
        return not (self.has_compactions and compacted.boundary.policy == RECORDED)

    def _entry(self, entry: Entry) -> Iterator[bytes]:
        said = [one for one in entry.said if self._stays(one)]
        if not said:
            return
        if entry.raw is not None:
            self._note(said[0].block)
            yield entry.raw.encode() + b"\n"
            return
        is_restated = entry.rest is not None and entry.rest.get("type") == RESTATED
        if is_restated and not self.outgoing.is_view:
            self.retained.hold([*self.fresh.items(said)], said)
            return
        blocks = [one.block for one in said]
        whole = None
        if entry.rest is not None and not is_restated and len(said) == len(entry.said):
            whole = restored(entry.rest, blocks)
        if whole is None:
            yield from self._anew(said)
            return
        item = whole.get("payload", whole)
        for block in blocks:
            if isinstance(block, ToolCall):
                self.fresh.came(block, item)
            elif isinstance(block, ToolResult) and (answer := self.fresh.answer_to(block)):
                item["type"] = answer
        self.retained.hold([item], said)
        yield from self._shown(whole, blocks, str(whole.get("timestamp") or ""))

    def _stays(self, said: Said) -> bool:
        return not said.retracted or said.position < self.rolled_back

    def _note(self, note: AnyBlock) -> None:
        """What a line that was kept raw says of the thread from here on."""
        if isinstance(note, Block) and note.name in ("turn_context", "thread_name_updated"):
            payload = json.loads(note.text)["payload"]
            if note.name == "turn_context":
                self.model = payload.get("model") or self.model
            elif payload.get("thread_id") in (None, self.outgoing.key):
                self.title = payload.get("thread_name") or self.title

    def _anew(self, said: Sequence[Said]) -> Iterator[bytes]:
        """Items of blocks that came otherwise: from another format, or from cutbank itself."""
        if not said:
            return
        items = [*self.fresh.items(said)]
        self.retained.hold(items, said)
        time = _time(said[0])
        if items and self.model is None and self.outgoing.model and not self.is_bare:
            self.model = self.outgoing.model
            yield encoded(turn_context(self.model, time))
        for item in items:
            whole = item if self.is_bare else line("response_item", item, time)
            yield from self._shown(whole, [one.block for one in said], time)

    def _shown(self, whole: Item, blocks: Sequence[AnyBlock], time: str) -> Iterator[bytes]:
        """A line, and the event that shows it to the person."""
        yield encoded(whole)
        if self.is_bare:
            return
        item = whole.get("payload", whole)
        if item.get("type") != "message":
            return
        words = [block.text for block in blocks if block.kind in (Kind.USER, Kind.ASSISTANT)]
        text = "\n".join(word for word in words if word)
        if text and item.get("role") == "user":
            yield encoded(event("user_message", time, message=text, images=[]))
        elif text and item.get("role") == "assistant":
            yield encoded(event("agent_message", time, message=text))

    def _called(self, call: ModelCalled) -> Iterator[bytes]:
        if call.cost_usd is not None:
            self.outgoing.lose("costs of calls")
        if self.is_bare or call.usage is None:
            self.outgoing.lose("calls without usage")
            return
        time = time_of(call.timestamp, call.source_time)
        if call.model and call.model != self.model:
            self.model = call.model
            yield encoded(turn_context(call.model, time))
        yield encoded(self.totals.count(call.usage, time, call.context_window))

    def _compacted(self, compacted: Compacted) -> Iterator[bytes]:
        if not self._is_written(compacted):
            return
        boundary, summary = compacted.boundary, compacted.summary
        time = time_of(compacted.time, boundary.source_time)
        history: list[Item] = []
        text = ""
        if summary:
            text = summary_message.wrapped(summary.text, summary.covers, boundary.hidden)
            content = [{"type": "input_text", "text": text, **MARK}]
            history.append({"type": "message", "role": "user", "content": content})
        elif self.outgoing.is_view:
            return  # nothing stands for what was left out
        if self.is_bare:
            yield from (encoded(item) for item in history)
            return
        for items, said in self.retained.kept_by(compacted):
            history += Fresh(replace(self.outgoing)).items(said) if items is None else items
        payload = {"message": text, "replacement_history": history}
        yield encoded(line("compacted", payload, time))
        yield encoded(self.totals.left(boundary.post_tokens, time))
        yield encoded(event("context_compacted", time))

    def _titled(self) -> Iterator[bytes]:
        title = self.outgoing.title
        if title and title != self.title and not self.is_bare:
            thread = thread_id(self.outgoing.key)
            time = time_of(self.outgoing.opened)
            named: dict[str, Any] = {"thread_id": thread, "thread_name": title}
            yield encoded(event("thread_name_updated", time, **named))


def _goes_on(held: list[Said], part: Entry | Said | Called | Compacted) -> bool:
    """Whether this is one more part of the message that is held: of a user's, say."""
    name = held[0].block.message_id
    return (
        isinstance(part, Said)
        and name is not None
        and part.block.message_id == name
        and held[0].block.kind not in (Kind.TOOL_CALL, Kind.TOOL_RESULT, *NOT_SENT)
    )


def _time(said: Said) -> str:
    origin = said.block.origin
    recorded: datetime = said.time
    return time_of(recorded, origin.time if origin else None)
