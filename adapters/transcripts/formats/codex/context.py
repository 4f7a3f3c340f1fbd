"""Which items Codex has in its context: what a compaction kept, and how far back a turn lies."""

from array import array
from bisect import bisect_right
from typing import Any

from ..json_lines import SourceLine
from ..reading.fields import JsonDict
from .entries import PASSTHROUGH_FIELD

_IGNORED_FIELDS = frozenset({PASSTHROUGH_FIELD, "id", "phase", "status", "metadata", "end_turn"})
"""Fields that a compaction leaves out of the items that it keeps, or changes."""
_ANSWER_FIELDS = frozenset({"output"})
"""What a compaction may shorten of an item that it keeps."""
_HASH_MASK = 0xFFFF_FFFF_FFFF_FFFF

PROMPT_KIND, INPUT_KIND, OTHER_KIND = b"p", b"t", b"o"
"""What an item is for those that go back: a person's prompt, a harness's words, or neither."""


def hash_item(item: JsonDict, line: SourceLine) -> int:
    """A number that items have in common which say the same, or answer the same call."""
    if item.get("type") == "message" and isinstance(content := item.get("content"), list):
        said: Any = [item.get("role"), [_comparable_part(part) for part in content]]
    else:
        skipped = _IGNORED_FIELDS | _ANSWER_FIELDS if item.get("call_id") else _IGNORED_FIELDS
        said = sorted((name, item[name]) for name in item.keys() - skipped)
    return hash(line.to_json(said)) & _HASH_MASK


def hash_answer(item: JsonDict, line: SourceLine) -> int:
    """A number that answers have in common which are the same."""
    return hash(line.to_json(item.get("output"))) & _HASH_MASK


def _comparable_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return [part.get("type"), part.get("text"), part.get("image_url")]


class ItemContext:
    """The items in context, oldest first: 33 bytes for each, however long they are."""

    def __init__(self) -> None:
        self.hashes = array("Q")
        self.answers = array("Q")
        """What they answered at first, however a compaction showed it since."""
        self.lines = array("Q")
        self.parts = array("Q")
        """The place in a compaction's line, from 1 on; 0 for a line of its own."""
        self.kinds = bytearray()

    def __len__(self) -> int:
        return len(self.hashes)

    def add(self, hashed: int, answer: int, line: int, part: int, kind: bytes) -> None:
        self.hashes.append(hashed)
        self.answers.append(answer)
        self.lines.append(line)
        self.parts.append(part)
        self.kinds += kind

    def source_id_at(self, index: int) -> str:
        """The source id of an item's blocks."""
        return make_source_id(self.lines[index], self.parts[index])

    def match_items(self, hashes: list[int]) -> list[int | None]:
        """For each of these, in order, the item in context that it says again; each only once."""
        places: dict[int, list[int]] = {hashed: [] for hashed in hashes}
        for index, hashed in enumerate(self.hashes):
            if hashed in places:
                places[hashed].append(index)
        found: list[int | None] = []
        last = -1
        for hashed in hashes:
            there = places[hashed]
            at = bisect_right(there, last)
            found.append(there[at] if at < len(there) else None)
            last = there[at] if at < len(there) else last
        return found

    def prompt_indexes(self) -> list[int]:
        """Where a person's prompts are."""
        return [index for index, kind in enumerate(self.kinds) if kind == PROMPT_KIND[0]]

    def keep(self, kept: list[int]) -> None:
        """Leave out all others."""
        for column in (self.hashes, self.answers, self.lines, self.parts):
            column[:] = array("Q", [column[index] for index in kept])
        self.kinds = bytearray(self.kinds[index] for index in kept)

    def drop_turns(self, turns: int) -> int | None:
        """Leave out the last turns; tells how many items are left, None where nothing changes.

        What precedes the first prompt always stays; what a harness said just before a later one
        goes with it.
        """
        prompts = self.prompt_indexes()
        if turns <= 0 or not prompts:
            return None
        cut = prompts[max(0, len(prompts) - turns)]
        while cut > prompts[0] and self.kinds[cut - 1] == INPUT_KIND[0]:
            cut -= 1
        for column in (self.hashes, self.answers, self.lines, self.parts, self.kinds):
            del column[cut:]
        return cut


def make_source_id(line: int, part: int = 0) -> str:
    """What the entry of a line is called; `part` is the place in a compaction's line, from 1 on."""
    return f"line:{line}:{part}" if part else f"line:{line}"
