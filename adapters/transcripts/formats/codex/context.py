"""Tracks the items in Codex's context through compactions and rollbacks."""

from array import array
from bisect import bisect_right
from typing import Any

from ..json_lines import SourceLine
from ..reading.fields import JsonDict
from .entries import PASSTHROUGH_FIELD

_IGNORED_FIELDS = frozenset({PASSTHROUGH_FIELD, "id", "phase", "status", "metadata", "end_turn"})
"""Fields that a compaction removes from kept items, or changes."""
_ANSWER_FIELDS = frozenset({"output"})
"""The field of a kept item that a compaction may shorten."""
_HASH_MASK = 0xFFFF_FFFF_FFFF_FFFF

PROMPT_KIND, INPUT_KIND, OTHER_KIND = b"p", b"t", b"o"
"""The item's role in a rollback: a user's prompt, a harness's message, or neither."""


def hash_item(item: JsonDict, line: SourceLine) -> int:
    """Return the same number for items with equal content, or that answer the same call."""
    if item.get("type") == "message" and isinstance(content := item.get("content"), list):
        said: Any = [item.get("role"), [_comparable_part(part) for part in content]]
    else:
        skipped = _IGNORED_FIELDS | _ANSWER_FIELDS if item.get("call_id") else _IGNORED_FIELDS
        said = sorted((name, item[name]) for name in item.keys() - skipped)
    return hash(line.to_json(said)) & _HASH_MASK


def hash_answer(item: JsonDict, line: SourceLine) -> int:
    """Return the same number for equal answers."""
    return hash(line.to_json(item.get("output"))) & _HASH_MASK


def _comparable_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return [part.get("type"), part.get("text"), part.get("image_url")]


class ItemContext:
    """The items in context, oldest first, at 33 bytes each, whatever their size."""

    def __init__(self) -> None:
        self.hashes = array("Q")
        self.answers = array("Q")
        """The original answers, even if a compaction shortened them since."""
        self.lines = array("Q")
        self.parts = array("Q")
        """The index in a compaction's line, from 1 on; 0 for a line of its own."""
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
        """Return the source id of an item's blocks."""
        return make_source_id(self.lines[index], self.parts[index])

    def match_items(self, hashes: list[int]) -> list[int | None]:
        """For each item, in order, return the matching item in context; use each only once."""
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
        return [index for index, kind in enumerate(self.kinds) if kind == PROMPT_KIND[0]]

    def keep(self, kept: list[int]) -> None:
        """Remove all other items."""
        for column in (self.hashes, self.answers, self.lines, self.parts):
            column[:] = array("Q", [column[index] for index in kept])
        self.kinds = bytearray(self.kinds[index] for index in kept)

    def drop_turns(self, turns: int) -> int | None:
        """Remove the last turns; return the number of remaining items, None if nothing changes.

        Items before the first prompt always stay; harness messages just before a prompt leave with
        it.
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
    """Return the source id of a line; `part` is the index in a compaction's line, from 1 on."""
    return f"line:{line}:{part}" if part else f"line:{line}"
