"""Writes a session as an opencode export: own entries unchanged, others converted."""

import json
from collections.abc import Iterator

from .....domain.blocks import Kind
from ..content.fill_entry import fill_entry
from ..outgoing import OutgoingEntry, OutgoingMessage, OutgoingSession
from ..reading.fields import JsonDict
from ..writing import json_bytes
from ..writing.own_entries import group_own_entries
from .message_builder import OpencodeMessageBuilder, make_session_id
from .names import (
    FORMAT_NAME,
    OPENCODE_MESSAGE_PREFIX,
    OPENCODE_SESSION_ENTRY,
    PART_PREFIX,
    PRUNED_TEXT,
)


def write(outgoing: OutgoingSession) -> Iterator[bytes]:
    document = OpencodeDocument(outgoing)
    document.put_all()
    if outgoing.system_prompt:
        outgoing.count_loss("system prompts")
    yield json_bytes.encode_document(document.build())


class OpencodeDocument:
    """An export that is being built. Of entries with one id, it holds the last version."""

    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.header: JsonDict | None = None
        self.messages: dict[str, JsonDict] = {}
        self.parts: dict[str, dict[str, JsonDict]] = {}
        self.places: dict[str, JsonDict] = {}
        self.made = OpencodeMessageBuilder(outgoing)

    def put_all(self) -> None:
        """Add own entries unchanged, and convert the others."""
        for one in group_own_entries(self.outgoing, FORMAT_NAME):
            if isinstance(one, OutgoingEntry):
                self._restore(one)
                continue
            self._drop_reverted()
            self._add_messages(
                self.made.build_message(one)
                if isinstance(one, OutgoingMessage)
                else self.made.build_compaction(one)
            )

    def _drop_reverted(self) -> None:
        """Remove what opencode reverted, as opencode does when something follows."""
        match self.header:
            case {"info": {"revert": revert} as info}:
                del info["revert"]
                first = revert.get("messageID") if isinstance(revert, dict) else None
                ids = list(self.messages)
                for id in ids[ids.index(first) :] if first in ids else ():
                    del self.messages[id]
            case _:
                pass

    def build(self) -> JsonDict:
        """Return the document. A new message gets a session title as in opencode."""
        header = self.header or {"info": self.made.make_header()}
        for id, message in self.messages.items():
            message["parts"] = list(self.parts[id].values())
        return header | {"messages": list(self.messages.values())}

    def _add_messages(self, made: list[JsonDict]) -> None:
        for message in made:
            id = message["info"]["id"]
            self.messages[id] = message
            self.parts[id] = {part["id"]: part for part in message["parts"]}

    def _restore(self, entry: OutgoingEntry) -> None:
        said = entry.outgoing_blocks[0]
        block, origin = said.block, said.block.origin
        assert origin, "an entry has an origin"
        id = origin.id or ""
        if entry.raw is not None and block.kind is Kind.NOTE:
            self._restore_raw(getattr(block, "name", None) or "", id, json.loads(entry.raw))
        elif entry.remainder is not None and not self._is_retracted(entry):
            whole = fill_entry(entry.remainder, [one.block for one in entry.outgoing_blocks])
            if (known := self.places.get(id)) and block.kind is not Kind.TOOL_CALL:
                state = known.get("state", {}) | whole.pop("state", {})
                known |= whole | ({"state": state} if state else {})
            else:
                self._place_part(id, whole)
            if block.kind is Kind.TOOL_CALL:
                self.made.note_open_call(getattr(block, "tool_call_id", ""), self.places[id])

    def _restore_raw(self, kind: str, id: str, item: JsonDict) -> None:
        if kind == OPENCODE_SESSION_ENTRY:
            self.header = item
            self.made.session = make_session_id(self.outgoing, item)
        elif kind.startswith(OPENCODE_MESSAGE_PREFIX):
            self.messages[id] = item
            self.parts.setdefault(id, {})
            self.made.follow_message(item["info"], id)
        elif kind.startswith(PART_PREFIX):
            self._place_part(id, item)
        elif kind == PRUNED_TEXT and item["id"] in self.places:
            state = self.places[item["id"]]["state"]
            state["time"] = state.get("time", {}) | {"compacted": item["compacted"]}

    def _place_part(self, id: str, part: JsonDict) -> None:
        named = part.get("messageID")
        newest = next(reversed(self.messages), "")
        owner = named if isinstance(named, str) and named in self.messages else newest
        self.parts.setdefault(owner, {})[id] = part
        self.places[id] = part

    def _is_retracted(self, entry: OutgoingEntry) -> bool:
        """Return whether cutbank retracted it; opencode's own reverts are in the header."""
        reverted = "revert" in (self.header or {}).get("info", {})
        return not reverted and all(one.is_retracted for one in entry.outgoing_blocks)
