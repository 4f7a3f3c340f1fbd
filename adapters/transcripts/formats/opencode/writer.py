"""Writes a session as an opencode export: its own entries as they came, others in its shape."""

import json
from collections.abc import Iterator

from .....domain.blocks import Kind
from ..content.filling import filled
from ..outgoing import Entry, Message, Outgoing
from ..reading.fields import Item
from ..writing import json_out
from ..writing.own_entries import own_entries
from .messages import Made, id_of
from .names import MESSAGE, NAME, PART, PRUNED, SESSION


def write(outgoing: Outgoing) -> Iterator[bytes]:
    """The session as one document."""
    document = Document(outgoing)
    document.put_all()
    if outgoing.system_prompt:
        outgoing.lose("system prompts")
    yield json_out.pretty(document.whole())


class Document:
    """An export in the making. What came under one id twice is there once, as it came last."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.header: Item | None = None
        self.messages: dict[str, Item] = {}
        self.parts: dict[str, dict[str, Item]] = {}
        """The parts of each message, by their ids."""
        self.places: dict[str, Item] = {}
        """All parts by their ids."""
        self.made = Made(outgoing)

    def put_all(self) -> None:
        """Entries of opencode's own as they came, and what came from elsewhere in their shape."""
        for one in own_entries(self.outgoing, NAME):
            if isinstance(one, Entry):
                self._put(one)
                continue
            self._drop_reverted()
            self._add(
                self.made.message(one) if isinstance(one, Message) else self.made.compaction(one)
            )

    def _drop_reverted(self) -> None:
        """What opencode reverted is gone as soon as something follows."""
        match self.header:
            case {"info": {"revert": revert} as info}:
                del info["revert"]
                first = revert.get("messageID") if isinstance(revert, dict) else None
                ids = list(self.messages)
                for id in ids[ids.index(first) :] if first in ids else ():
                    del self.messages[id]
            case _:
                pass

    def whole(self) -> Item:
        """The document. A message that was made names the session as opencode would."""
        header = self.header or {"info": self.made.info()}
        for id, message in self.messages.items():
            message["parts"] = list(self.parts[id].values())
        return header | {"messages": list(self.messages.values())}

    def _add(self, made: list[Item]) -> None:
        for message in made:
            id = message["info"]["id"]
            self.messages[id] = message
            self.parts[id] = {part["id"]: part for part in message["parts"]}

    def _put(self, entry: Entry) -> None:
        said = entry.said[0]
        block, origin = said.block, said.block.origin
        assert origin, "an entry has an origin"
        id = origin.id or ""
        if entry.raw is not None and block.kind is Kind.NOTE:
            self._put_raw(getattr(block, "name", None) or "", id, json.loads(entry.raw))
        elif entry.rest is not None and not self._is_taken_back(entry):
            whole = filled(entry.rest, [one.block for one in entry.said])
            if (known := self.places.get(id)) and block.kind is not Kind.TOOL_CALL:
                state = known.get("state", {}) | whole.pop("state", {})
                known |= whole | ({"state": state} if state else {})
            else:
                self._place(id, whole)
            if block.kind is Kind.TOOL_CALL:
                self.made.answers(getattr(block, "tool_call_id", ""), self.places[id])

    def _put_raw(self, kind: str, id: str, item: Item) -> None:
        if kind == SESSION:
            self.header = item
            self.made.session = id_of(self.outgoing, item)
        elif kind.startswith(MESSAGE):
            self.messages[id] = item
            self.parts.setdefault(id, {})
            self.made.follow(item["info"], id)
        elif kind.startswith(PART):
            self._place(id, item)
        elif kind == PRUNED and item["id"] in self.places:
            state = self.places[item["id"]]["state"]
            state["time"] = state.get("time", {}) | {"compacted": item["compacted"]}

    def _place(self, id: str, part: Item) -> None:
        named = part.get("messageID")
        newest = next(reversed(self.messages), "")
        owner = named if isinstance(named, str) and named in self.messages else newest
        self.parts.setdefault(owner, {})[id] = part
        self.places[id] = part

    def _is_taken_back(self, entry: Entry) -> bool:
        """Whether cutbank took it back: opencode itself says in the header what it reverted."""
        reverted = "revert" in (self.header or {}).get("info", {})
        return not reverted and all(one.retracted for one in entry.said)
