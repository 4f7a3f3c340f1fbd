"""Tracks the items in Codex's context, through rollbacks and through `compacted` lines."""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import Any

from .....domain.blocks import PROMPT_KINDS, AnyBlock, Block, Kind, Origin, ToolResult
from .....domain.compaction_events import Trigger
from .....projections.rendering import summary_message
from ..fields import JsonDict, get_field, require_object
from ..json_lines import SourceLine
from ..steps import Append, ImportStep, ReplacementText, SourceCompaction, SourceShortening
from ..summary_mark import find_marked_summary
from .entries import FORMAT_NAME, PASSTHROUGH_FIELD
from .items import ItemContent, read_item

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


def rollback_kind(read: ItemContent) -> bytes:
    """Return the item's role in a rollback."""
    kinds = {block.kind for block in read.blocks} if read.is_message else set()
    if kinds & PROMPT_KINDS:
        return PROMPT_KIND
    return INPUT_KIND if kinds == {Kind.DEVELOPER} else OTHER_KIND


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


HISTORY_FIELD = "replacement_history"
"""The entry type of blocks that a compaction added to the context.

The line of the compaction holds them, and is kept unchanged.
"""

_SUMMARY_ENCRYPTED = "the summary is encrypted"
_SUMMARY_MISSING = "there is no summary"
_KEPT_UNKNOWN = "it does not say what it kept"

_INPUT_KINDS = (Kind.USER, Kind.DEVELOPER)


@dataclass(slots=True)
class CodexCompaction:
    """A compaction, until its remaining tokens are known."""

    key: str
    time: str | None
    summary: str | None
    kept_ids: tuple[str, ...]
    partial_reason: str | None
    pre_tokens: int | None
    has_predecessors: bool
    """Whether there was anything to compact."""
    line: SourceLine
    replacements: tuple[ReplacementText, ...] = ()
    """Answers that were kept in shortened form."""
    is_whole: bool = False
    new_appends: list[Append] = field(default_factory=list)
    """The items of the new context that were not in the old one."""

    def make_steps(self, post_tokens: int | None = None) -> list[ImportStep]:
        """Return the boundary, and the items that came into context with it."""
        if self.replacements and self.is_whole and not self.summary:
            return [self._make_shortening(post_tokens), *self.new_appends]
        if self.has_predecessors:
            compacted = replace(
                make_compaction_step(self.summary, self.key, self.time),
                kept_ids=self.kept_ids,
                pre_tokens=self.pre_tokens,
                post_tokens=post_tokens or None,
                partial_reason=self.partial_reason,
                replacements=self.replacements,
            )
            return [compacted, *self.new_appends]
        if not self.summary:
            return [*self.new_appends]
        return [
            append_inherited_summary(self.summary, self.key, self.line, self.time),
            *self.new_appends,
        ]

    def _make_shortening(self, post_tokens: int | None) -> SourceShortening:
        return SourceShortening(
            f"{self.key}:shortened",
            Trigger.THRESHOLD,
            self.replacements,
            pre_tokens=self.pre_tokens,
            post_tokens=post_tokens or None,
            source_time=self.time,
        )


def make_compaction_step(summary: str | None, key: str, time: str | None) -> SourceCompaction:
    """Return a compaction that removed everything before it."""
    return SourceCompaction(
        key=f"{key}:compacted",
        trigger=Trigger.THRESHOLD,  # the default if the source names no trigger
        summary=summary,
        source_time=time,
    )


def append_inherited_summary(summary: str, key: str, line: SourceLine, time: str | None) -> Append:
    """Append a summary of another rollout's content, if nothing precedes it."""
    told = Block.developer(summary, name="summary", origin=_origin(line, 0, time))
    return Append(f"{key}:summary", told)


def find_summary(read: ItemContent, item: JsonDict) -> str | None:
    """Return the summary if an item is exactly one written by cutbank."""
    if not read.is_message or len(read.blocks) != 1 or read.blocks[0].kind not in _INPUT_KINDS:
        return None
    found = find_marked_summary(item, read.blocks[0].text)
    return found.text if found else None


def read_compaction(
    payload: JsonDict,
    line: SourceLine,
    key: str,
    context: ItemContext,
    *,
    time: str | None,
    size: int | None,
) -> CodexCompaction:
    """Read a compaction line and update the context."""
    message = get_field(payload, "message", str) or ""
    history = get_field(payload, "replacement_history", list)
    items = [require_object(item, "replacement_history: ") for item in history or []]
    items = [item for item in items if not (message and _message_text(item) == message)]
    read = [read_item(item, line) for item in items]
    hashes = [hash_item(item, line) for item in items]
    wrapped = summary_message.parse_summary_message(message)
    partial = None
    if history is None:
        partial = _KEPT_UNKNOWN
    elif any(item.get("encrypted_content") for item in items):
        partial = _SUMMARY_ENCRYPTED
    elif not message:
        partial = _SUMMARY_MISSING
    answers = [hash_answer(item, line) for item in items]
    kept: list[int | None] = [*context.prompt_indexes()]
    instead: list[ReplacementText] = []
    if history is not None:
        shown = [_answer_text(one) for one in read]
        matched = [
            index if index is None or context.answers[index] == answer or text else None
            for index, answer, text in zip(context.match_items(hashes), answers, shown, strict=True)
        ]
        kept = _match_call_pairs(matched, read)
        for index, answer, text, one in zip(kept, answers, shown, read, strict=True):
            if index is not None and text and context.answers[index] != answer:
                instead.append(ReplacementText(context.source_id_at(index), text, one.call_id))
    found = CodexCompaction(
        key=key,
        time=time,
        summary=wrapped.text if wrapped else message or None,
        kept_ids=tuple(context.source_id_at(index) for index in kept if index is not None),
        partial_reason=partial,
        pre_tokens=size,
        has_predecessors=len(context) > 0,
        line=line,
        replacements=tuple(instead),
        is_whole=len(context) == sum(index is not None for index in kept),
    )
    context.keep([index for index in kept if index is not None])
    for place, (one, hashed, answer) in enumerate(zip(read, hashes, answers, strict=True), 1):
        if kept[place - 1] is None and one.blocks:
            context.add(hashed, answer, line.number, place, rollback_kind(one))
            found.new_appends += _make_appends(one, line, key, place, time)
    return found


def _answer_text(read: ItemContent) -> str | None:
    """Return the text of an answer that has only text."""
    match read.blocks:
        case [ToolResult(content=str(text))] if read.call_id:
            return text or None
        case _:
            return None


def _match_call_pairs(matched: list[int | None], read: list[ItemContent]) -> list[int | None]:
    """Match calls with their answers: both are kept, or both are new."""
    broken = {one.call_id for one, index in zip(read, matched, strict=True) if index is None}
    return [
        None if one.call_id and one.call_id in broken else index
        for one, index in zip(read, matched, strict=True)
    ]


def _make_appends(
    read: ItemContent, line: SourceLine, key: str, place: int, time: str | None
) -> list[Append]:
    id = make_source_id(line.number, place)
    shared = {"message_id": id} if len(read.blocks) > 1 else {}
    appends: list[Append] = []
    for index, block in enumerate(read.blocks):
        origin = _origin(line, place, time, again=index > 0)
        placed: AnyBlock = block.model_copy(update={"origin": origin, **shared})
        appends.append(Append(f"{key}:{place}:{index}", placed, id))
    return appends


def _origin(line: SourceLine, place: int, time: str | None, *, again: bool = False) -> Origin:
    return Origin(
        format=FORMAT_NAME,
        id=f"{HISTORY_FIELD}:{place}",
        time=time,
        entry=None if again else f'{{"type":"{HISTORY_FIELD}"}}',
        line=line.number,
    )


def _message_text(item: JsonDict) -> str | None:
    """Return the text of a message that has only text."""
    match item:
        case {"type": "message", "content": [{"text": str(text)}]}:
            return text
        case _:
            return None
