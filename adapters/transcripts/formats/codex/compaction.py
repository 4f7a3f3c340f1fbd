"""Tracks the items in Codex's context, through rollbacks and through `compacted` lines."""

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

PROMPT_ROLE, INPUT_ROLE, OTHER_ROLE = "prompt", "input", "other"
"""The item's role in a rollback: a user's prompt, a harness's message, or neither."""


@dataclass(frozen=True, slots=True)
class ContextItem:
    """An item in context, by hashes of its content."""

    content: int
    """Equal for items with equal content, or that answer the same call."""
    answer: int
    """Of the original answer, even if a compaction shortened it since."""
    source_id: str
    """The source id of its blocks."""
    role: str


def make_context_item(
    read: ItemContent, item: JsonDict, line: SourceLine, source_id: str
) -> ContextItem:
    if item.get("type") == "message" and isinstance(content := item.get("content"), list):
        said: Any = [item.get("role"), [_comparable_part(part) for part in content]]
    else:
        skipped = _IGNORED_FIELDS | _ANSWER_FIELDS if item.get("call_id") else _IGNORED_FIELDS
        said = sorted((name, item[name]) for name in item.keys() - skipped)
    hashes = hash(line.to_json(said)), hash(line.to_json(item.get("output")))
    return ContextItem(*hashes, source_id, _find_role(read))


def _find_role(read: ItemContent) -> str:
    kinds = {block.kind for block in read.blocks} if read.is_message else set()
    if kinds & PROMPT_KINDS:
        return PROMPT_ROLE
    return INPUT_ROLE if kinds == {Kind.DEVELOPER} else OTHER_ROLE


def _comparable_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return [part.get("type"), part.get("text"), part.get("image_url")]


class ItemContext:
    """The items in context, oldest first."""

    def __init__(self) -> None:
        self.items: list[ContextItem] = []

    def match_items(self, items: list[ContextItem]) -> list[int | None]:
        """For each item, in order, return the matching item in context; use each only once."""
        places: dict[int, list[int]] = {item.content: [] for item in items}
        for index, known in enumerate(self.items):
            if known.content in places:
                places[known.content].append(index)
        found: list[int | None] = []
        last = -1
        for item in items:
            there = places[item.content]
            at = bisect_right(there, last)
            found.append(there[at] if at < len(there) else None)
            last = there[at] if at < len(there) else last
        return found

    def prompt_indexes(self) -> list[int]:
        return [index for index, item in enumerate(self.items) if item.role == PROMPT_ROLE]

    def drop_turns(self, turns: int) -> int | None:
        """Remove the last turns; return the number of remaining items, None if nothing changes.

        Items before the first prompt always stay; harness messages just before a prompt leave with
        it.
        """
        prompts = self.prompt_indexes()
        if turns <= 0 or not prompts:
            return None
        cut = prompts[max(0, len(prompts) - turns)]
        while cut > prompts[0] and self.items[cut - 1].role == INPUT_ROLE:
            cut -= 1
        del self.items[cut:]
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
    now = [
        make_context_item(one, item, line, make_source_id(line.number, place))
        for place, (one, item) in enumerate(zip(read, items, strict=True), 1)
    ]
    wrapped = summary_message.parse_summary_message(message)
    partial = None
    if history is None:
        partial = _KEPT_UNKNOWN
    elif any(item.get("encrypted_content") for item in items):
        partial = _SUMMARY_ENCRYPTED
    elif not message:
        partial = _SUMMARY_MISSING
    before = context.items
    kept: list[int | None] = [*context.prompt_indexes()]
    instead: list[ReplacementText] = []
    if history is not None:
        shown = [_answer_text(one) for one in read]
        matched = [
            index if index is None or text or before[index].answer == item.answer else None
            for index, item, text in zip(context.match_items(now), now, shown, strict=True)
        ]
        kept = _match_call_pairs(matched, read)
        for index, item, text, one in zip(kept, now, shown, read, strict=True):
            if index is not None and text and before[index].answer != item.answer:
                instead.append(ReplacementText(before[index].source_id, text, one.call_id))
    found = CodexCompaction(
        key=key,
        time=time,
        summary=wrapped.text if wrapped else message or None,
        kept_ids=tuple(before[index].source_id for index in kept if index is not None),
        partial_reason=partial,
        pre_tokens=size,
        has_predecessors=len(before) > 0,
        line=line,
        replacements=tuple(instead),
        is_whole=len(before) == sum(index is not None for index in kept),
    )
    context.items = [before[index] for index in kept if index is not None]
    for place, (one, item) in enumerate(zip(read, now, strict=True), 1):
        if kept[place - 1] is None and one.blocks:
            context.items.append(item)
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
