"""Tracks the items in Codex's context, through rollbacks and through `compacted` lines."""

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Any

from .....domain.blocks import PROMPT_KINDS, AnyBlock, Block, BlockKind, Origin, ToolResult
from .....domain.compaction_events import Trigger
from .....projections.rendering import summary_message
from ..entry_steps import EntrySteps
from ..fields import JsonDict, get_field, require_object
from ..json_lines import SourceLine
from ..steps import Append, ImportStep, ReplacementText, SourceCompaction
from ..summary_mark import find_marked_summary
from .entries import PASSTHROUGH_FIELD, find_call_id, read_item

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
    read: list[AnyBlock], item: JsonDict, line: SourceLine, source_id: str
) -> ContextItem:
    if item.get("type") == "message" and isinstance(content := item.get("content"), list):
        said: Any = [item.get("role"), [_comparable_part(part) for part in content]]
    else:
        skipped = _IGNORED_FIELDS | _ANSWER_FIELDS if item.get("call_id") else _IGNORED_FIELDS
        said = sorted((name, item[name]) for name in item.keys() - skipped)
    answer = hash(line.to_json(item["output"])) if "output" in item else 0
    return ContextItem(hash(line.to_json(said)), answer, source_id, _find_role(read, item))


def _find_role(read: list[AnyBlock], item: JsonDict) -> str:
    kinds = {block.kind for block in read} if item.get("type") == "message" else set()
    if kinds & PROMPT_KINDS:
        return PROMPT_ROLE
    return INPUT_ROLE if kinds == {BlockKind.DEVELOPER} else OTHER_ROLE


def _comparable_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return [part.get("type"), part.get("text"), part.get("image_url")]


def _match_items(context: list[ContextItem], items: list[ContextItem]) -> list[int | None]:
    """For each item, in order, return the matching item in context; use each only once."""
    places: dict[int, list[int]] = {item.content: [] for item in items}
    for index, known in enumerate(context):
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


def _find_prompts(context: list[ContextItem]) -> list[int]:
    return [index for index, item in enumerate(context) if item.role == PROMPT_ROLE]


def drop_turns(context: list[ContextItem], turns: int) -> bool:
    """Remove the last turns; return whether there were any.

    Items before the first prompt always stay; harness messages just before a prompt leave with it.
    """
    prompts = _find_prompts(context)
    if turns <= 0 or not prompts:
        return False
    cut = prompts[max(0, len(prompts) - turns)]
    while cut > prompts[0] and context[cut - 1].role == INPUT_ROLE:
        cut -= 1
    del context[cut:]
    return True


def make_source_id(line: int, part: int = 0) -> str:
    """Return the source id of a line; `part` is the index in a compaction's line, from 1 on."""
    return f"line:{line}:{part}" if part else f"line:{line}"


_INPUT_KINDS = (BlockKind.USER, BlockKind.DEVELOPER)


def make_compaction_step(entry: EntrySteps, summary: str | None) -> SourceCompaction:
    return SourceCompaction(
        key=f"{entry.key}:compacted",
        trigger=Trigger.THRESHOLD,  # the default if the source names no trigger
        summary=summary,
        source_time=entry.time,
    )


def append_inherited_summary(entry: EntrySteps, summary: str) -> Append:
    """Append a summary of another rollout's content, if nothing precedes it."""
    told = Block.developer(summary, name="summary", origin=_make_origin(entry, 0))
    return Append(f"{entry.key}:summary", told)


def find_summary(read: list[AnyBlock], item: JsonDict) -> str | None:
    if item.get("type") != "message" or len(read) != 1:
        return None
    (block,) = read
    found = find_marked_summary(item, block.text) if block.kind in _INPUT_KINDS else None
    return found.text if found else None


def read_compaction(
    entry: EntrySteps, payload: JsonDict, context: list[ContextItem], size: int | None
) -> list[ImportStep]:
    """Read a compaction line and update the context; return the steps, the boundary first.

    `size` is the number of tokens in context before it, if known.
    """
    line = entry.line
    message = get_field(payload, "message", str) or ""
    history = get_field(payload, "replacement_history", list)
    items = [require_object(item, "replacement_history: ") for item in history or []]
    items = [item for item in items if not (message and _message_text(item) == message)]
    read = [read_item(item, line) for item in items]
    now = [
        make_context_item(one, item, line, make_source_id(line.number, place))
        for place, (one, item) in enumerate(zip(read, items, strict=True), 1)
    ]
    before = [*context]
    kept: list[int | None] = [*_find_prompts(before)]
    instead: list[ReplacementText] = []
    if history is not None:
        kept = _match_history(before, now, read)
        for index, item, one in zip(kept, now, read, strict=True):
            if index is not None and before[index].answer != item.answer:
                text = _answer_text(one) or ""  # others match only with the same answer
                instead.append(ReplacementText(before[index].source_id, text, find_call_id(one)))
    wrapped = summary_message.parse_summary_message(message)
    summary = wrapped.text if wrapped else message or None
    context[:] = [before[index] for index in kept if index is not None]
    is_whole = len(context) == len(before)
    steps: list[ImportStep] = []
    if instead and is_whole and not summary:
        shortened = replace(
            make_compaction_step(entry, None),
            key=f"{entry.key}:shortened",
            pre_tokens=size,
            replacements=tuple(instead),
            is_shortening=True,
        )
        steps.append(shortened)
    elif before:
        compacted = replace(
            make_compaction_step(entry, summary),
            kept_ids=tuple(item.source_id for item in context),
            pre_tokens=size,
            partial_reason=_find_missing(history, items, message),
            replacements=tuple(instead),
        )
        steps.append(compacted)
    elif summary:
        steps.append(append_inherited_summary(entry, summary))
    for place, (one, item) in enumerate(zip(read, now, strict=True), 1):
        if kept[place - 1] is None and one:
            context.append(item)
            steps += _make_appends(entry, one, place)
    return steps


def add_post_tokens(steps: list[ImportStep], tokens: int | None) -> list[ImportStep]:
    """Return the steps of a compaction with the tokens that it left, once they are known."""
    match steps:
        case [SourceCompaction() as first, *others]:
            return [replace(first, post_tokens=tokens or None), *others]
        case _:
            return steps


def _find_missing(history: list[Any] | None, items: list[JsonDict], message: str) -> str | None:
    """Return what the line does not say."""
    if history is None:
        return "it does not say what it kept"
    if any(item.get("encrypted_content") for item in items):
        return "the summary is encrypted"
    return None if message else "there is no summary"


def _match_history(
    context: list[ContextItem], now: list[ContextItem], read: list[list[AnyBlock]]
) -> list[int | None]:
    """For each item of the new context, return the item that it was before.

    An answer of only text may be shortened. A call and its answer are both kept, or both new.
    """
    matched = [
        index
        if index is None or _answer_text(one) or context[index].answer == item.answer
        else None
        for index, item, one in zip(_match_items(context, now), now, read, strict=True)
    ]
    calls = [find_call_id(one) for one in read]
    broken = {call for call, index in zip(calls, matched, strict=True) if call and index is None}
    return [None if call in broken else index for call, index in zip(calls, matched, strict=True)]


def _answer_text(read: list[AnyBlock]) -> str | None:
    """Return the text of an answer that has only text."""
    match read:
        case [ToolResult(content=str(text))]:
            return text or None
        case _:
            return None


def _make_appends(entry: EntrySteps, blocks: list[AnyBlock], place: int) -> list[Append]:
    id = make_source_id(entry.number, place)
    shared: JsonDict = {"message_id": id} if len(blocks) > 1 else {}
    shared["origin"] = _make_origin(entry, place)
    return [
        Append(f"{entry.key}:{place}:{index}", block.model_copy(update=shared), id)
        for index, block in enumerate(blocks)
    ]


def _make_origin(entry: EntrySteps, place: int) -> Origin:
    return entry.make_origin().model_copy(update={"id": f"replacement_history:{place}"})


def _message_text(item: JsonDict) -> str | None:
    """Return the text of a message that has only text."""
    match item:
        case {"type": "message", "content": [{"text": str(text)}]}:
            return text
        case _:
            return None
