"""Folds the lines of a Codex rollout into steps."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from .....domain.blocks import Origin, ToolCall, ToolResult
from .....domain.session_events import Usage
from ..json_lines import Line, NestedTooDeeplyError
from ..reading.entry_steps import EntrySteps
from ..reading.fields import Item, MalformedError, an_object, take, take_optional
from ..source import Source
from ..steps import (
    Append,
    Aside,
    Asked,
    Begin,
    Linked,
    Rewind,
    Step,
)
from .compaction import Compaction, compaction_of, inherited, replaced_by, summary_in
from .context import PROMPT, Context, answer_in, hash_of, source_id
from .entries import AGAIN, ENDED, EVENTS, KEPT_RAW, MCP_ENDED, NAME, NO_USAGE, STATE, USAGE_AGAIN
from .items import UnheardError, read_communication, read_item
from .read import Read, kind_of
from .sessions import Spawning, begin_of, meta_of
from .usage import Meter


class Transcript:
    """What is known of a rollout at some line of it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.begin: Begin | None = None
        self.spawning = Spawning()
        self.context = Context()
        self.meter = Meter()
        self.prompt: str | None = None
        self.compaction: Compaction | None = None
        """One of which the next token count tells how much it left."""
        self.open: set[str] = set()
        """Calls without an output."""
        self.answered: dict[str, tuple[Line, Item]] = {}
        """By the calls that they answer, events that tell it before the output does."""
        self.now = EntrySteps(0, 0)

    def read(self, line: Line) -> Iterable[Step]:
        """The steps of one line."""
        self.now = EntrySteps(line.number, line.end)
        if line.problem:
            self.now.refuse(line, line.problem)
        else:
            try:
                self._read(line)
            except (MalformedError, NestedTooDeeplyError) as error:
                self.now.problem(str(error), line.text)
            except UnheardError as error:
                self.now.unknown(f"response_item/{error}", line.text)
        return self.now.ended()

    def close(self, *, final: bool = False) -> Iterable[Step]:
        """The steps that the end of the file brings."""
        # None is forgotten: the count may be the very next line to be written.
        steps = list(self.compaction.steps()) if self.compaction else []
        if final:
            steps += [_aside(MCP_ENDED, line) for line, _ in self.answered.values()]
        return steps

    def _read(self, line: Line) -> None:
        if self.begin is None:
            self.begin = begin_of(line.value, self.source)
            self.now.say(self.begin)
        entry = an_object(line.value)
        if "payload" not in entry:
            self._bare(entry, line)
            return
        kind = take(entry, "type", str)
        match kind:
            case "response_item":
                self._item(read_item(an_object(entry["payload"], "payload: "), line), entry, line)
            case "event_msg":
                self._event(an_object(entry["payload"], "payload: "), line)
            case "session_meta":
                self._meta(an_object(entry["payload"], "payload: "), line)
            case "turn_context":
                payload = an_object(entry["payload"], "payload: ")
                model = take_optional(payload, "model", str)
                self.meter.model = model or self.meter.model
                self._aside(kind, line)
            case "compacted":
                self._compacted(an_object(entry["payload"], "payload: "), line)
            case "inter_agent_communication":
                payload = an_object(entry["payload"], "payload: ")
                self._item(read_communication(payload), entry, line)
            case "token_usage_record":
                self._usage_record(an_object(entry["payload"], "payload: "), line)
            case _ if kind in KEPT_RAW:
                self._aside(kind, line)
            case _:
                self.now.unknown(kind, line.text)

    def _bare(self, entry: Item, line: Line) -> None:
        """A line of the oldest versions: an item that nothing is wrapped around."""
        if "type" in entry:
            self._item(read_item(entry, line), None, line)
        elif "record_type" in entry:
            self._aside("state", line)
        elif meta_of(entry) is not None:
            self._ask(take_optional(entry, "instructions", str), line)
            self._aside("session_meta", line)
        else:
            raise MalformedError("type: expected text, but it is missing")

    def _meta(self, meta: Item, line: Line) -> None:
        id = take(meta, "id", str)
        base = take_optional(meta, "base_instructions", dict) or {}
        text = take_optional(base, "text", str, "base_instructions.")
        own = self.begin is not None and id == self.begin.key
        if own:
            self._ask(text, line)
        else:
            self.spawning.copied = True
        self._aside("session_meta", line)
        if own and meta.get("history_base") is not None:
            reason = "history_base: what came before is in another rollout, and is not read"
            self.now.problem(reason)

    def _ask(self, prompt: str | None, line: Line) -> None:
        if prompt and prompt != self.prompt:
            self.prompt = prompt
            self.now.say(Asked(f"{_key(line)}:asked", system_prompt=prompt))

    def _item(self, read: Read, entry: Item | None, line: Line) -> None:
        """An item of the conversation; `entry` is what is wrapped around it."""
        payload = line.value if entry is None else entry["payload"]
        time = take_optional(line.value, "timestamp", str)
        self._settle()
        if not read.pieces:
            self._aside(str(payload.get("type")), line)
            return
        if summary := summary_in(read, payload):
            self._summarised(summary, line, time)
            return
        rest = read.rest if entry is None else {**entry, "payload": read.rest}
        origin = Origin(
            format=NAME,
            id=take_optional(payload, "id", str),
            time=time,
            entry=line.json(rest),
            line=line.number,
        )
        again = origin.model_copy(update={"entry": None}) if len(read.pieces) > 1 else origin
        name = source_id(line.number)
        kind = kind_of(read)
        self.context.add(hash_of(payload, line), answer_in(payload, line), line.number, 0, kind)
        for index, piece in enumerate(read.pieces):
            block = piece(origin=again if index else origin)
            served = read.served and index == 0
            self.now.say(Append(f"{_key(line)}:{index}", block, name, served=served))
        if read.call and read.pieces[0].func is ToolCall:
            self.open.add(read.call)
        elif read.call and read.pieces[0].func is ToolResult:
            self._answer(read.call, payload)
        if read.by_model:
            self.meter.answer = self.meter.answer or name
        elif kind == PROMPT:
            self.meter.answer = None  # whatever was answered before, nobody counted it
        self._spawned(read, payload)

    def _summarised(self, summary: str, line: Line, time: str | None) -> None:
        """A message was a summary: what precedes it left, and it is nobody's own words."""
        self._aside("summary", line)
        if len(self.context):
            self.now.say(replaced_by(summary, _key(line), time))
            self.context.keep([])
        else:
            self.now.say(inherited(summary, _key(line), line, time))

    def _spawned(self, read: Read, payload: Item) -> None:
        if self.begin is None:
            return
        agent = self.spawning.agent_of(read.call, payload)
        if agent and read.call and agent != self.begin.key:
            self.now.say(Linked(agent, self.begin.key, read.call))

    def _compacted(self, payload: Item, line: Line) -> None:
        time = take_optional(line.value, "timestamp", str)
        self._settle()
        found = compaction_of(
            payload, line, _key(line), self.context, time=time, size=self.meter.size
        )
        self.meter.answer = None
        self._aside("compacted", line)
        self.compaction = found

    def _settle(self, post_tokens: int | None = None) -> None:
        if self.compaction:
            self.now.say(*self.compaction.steps(post_tokens))
            self.compaction = None

    def _event(self, payload: Item, line: Line) -> None:
        kind = take(payload, "type", str)
        match kind:
            case "token_count":
                self._token_count(payload, line)
            case "thread_rolled_back":
                self._settle()
                self._rolled_back(take(payload, "num_turns", int), line)
                self._aside(kind, line)
            case "thread_name_updated":
                self._named(payload)
                self._aside(kind, line)
            case _ if kind == MCP_ENDED:
                self._mcp_ended(payload, line)
            case _ if kind in ENDED:
                if payload.get("error"):
                    self._aside(kind, line)
                else:
                    self.now.skip(f"event_msg/{kind}", STATE)
            case _ if reason := EVENTS.get(kind):
                self.meter.note_window(payload, "")
                self.now.skip(f"event_msg/{kind}", reason)
            case _:
                self.now.unknown(f"event_msg/{kind}", line.text)

    def _mcp_ended(self, payload: Item, line: Line) -> None:
        """What an MCP server answered: kept where the output of the call does not say the same."""
        call = take_optional(payload, "call_id", str)
        if call in self.open:
            self.answered[call] = (line, payload)
            self.now.skip(f"event_msg/{MCP_ENDED}", AGAIN)
        else:
            self._aside(MCP_ENDED, line)

    def _answer(self, call: str, payload: Item) -> None:
        """The output of a call: what an event told of it is kept where this leaves some out."""
        self.open.discard(call)
        if (told := self.answered.pop(call, None)) and not _says_all(payload, told[1]):
            self._aside(MCP_ENDED, told[0])

    def _rolled_back(self, turns: int, line: Line) -> None:
        left = self.context.go_back(turns)
        if left is not None:
            to = self.context.id(left - 1) if left else None
            self.now.say(Rewind(f"{_key(line)}:rewind", to))
            self.meter.answer = None

    def _named(self, payload: Item) -> None:
        title = take_optional(payload, "thread_name", str)
        thread = take_optional(payload, "thread_id", str)
        if title and self.begin and thread in (None, self.begin.key):
            self.begin = replace(self.begin, title=title)
            self.now.say(self.begin)

    def _token_count(self, payload: Item, line: Line) -> None:
        info = take_optional(payload, "info", dict) or {}
        self.meter.note_window(info, "info.")
        last = take_optional(info, "last_token_usage", dict, "info.")
        if last is None:
            self.now.skip("event_msg/token_count", NO_USAGE)
            return
        total = take_optional(info, "total_token_usage", dict, "info.")
        count = self.meter.read(last, total, "info.last_token_usage.")
        if not count.is_of_a_call:
            self._settle(count.size)
        if count.is_call:
            self._called(f"token_count:{line.number}", count.usage, line)
        else:
            self.now.skip("event_msg/token_count", USAGE_AGAIN)

    def _usage_record(self, payload: Item, line: Line) -> None:
        total = take_optional(payload, "thread_token_usage", dict)
        count = self.meter.read(take(payload, "usage", dict), total, "usage.")
        if count.is_call:
            id = take_optional(payload, "response_id", str)
            self._called(id or f"token_usage_record:{line.number}", count.usage, line)
        self._aside("token_usage_record", line)

    def _called(self, id: str, usage: Usage, line: Line) -> None:
        self._settle()
        time = take_optional(line.value, "timestamp", str)
        self.now.say(self.meter.call(id, _key(line), usage, time))

    def _aside(self, kind: str, line: Line) -> None:
        self.now.say(_aside(kind, line))


def _aside(kind: str, line: Line) -> Aside:
    return Aside(_key(line), kind, line.text, line=line.number)


def _says_all(output: Item, event: Item) -> bool:
    """Whether an output holds each text of what an MCP server answered, as it is or as JSON."""
    said = "\n".join(_texts(output))
    return all(
        text in said or json.dumps(text, ensure_ascii=False)[1:-1] in said
        for text in _texts(event.get("result"))
    )


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value that are no name of a type, at whatever depth."""
    left = [value]
    while left:
        match left.pop():
            case str() as text:
                yield text
            case dict() as item:
                left += [item[name] for name in item if name not in ("type", "mimeType")]
            case list() as items:
                left += items
            case _:
                pass


def _key(line: Line) -> str:
    """A line's name: nothing in it is distinct, for a copied history has one time for all."""
    return f"{line.digest}:{line.number}"
