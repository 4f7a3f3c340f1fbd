"""Reads `compacted` lines, which hold the new context, mostly items of the old one."""

from dataclasses import dataclass, field, replace

from .....domain.blocks import Block, Kind, Origin
from .....domain.compaction_events import Trigger
from .....projections.rendering import summary_message
from ..json_lines import SourceLine
from ..reading.fields import JsonDict, get_field, require_object
from ..steps import Append, ImportStep, ReplacementText, SourceCompaction, SourceShortening
from ..summary_mark import find_marked_summary
from .context import ItemContext, hash_answer, hash_item, make_source_id
from .entries import FORMAT_NAME
from .item_content import ItemContent, rollback_kind
from .items import read_item

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
    if len(read.factories) != 1 or read.factories[0].keywords.get("kind") not in _INPUT_KINDS:
        return None
    found = find_marked_summary(item, read.factories[0].keywords.get("text"))
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
        if kept[place - 1] is None and one.factories:
            context.add(hashed, answer, line.number, place, rollback_kind(one))
            found.new_appends += _make_appends(one, line, key, place, time)
    return found


def _answer_text(read: ItemContent) -> str | None:
    """Return the text of an answer that has only text."""
    match [piece.keywords.get("content") for piece in read.factories]:
        case [str(text)] if read.call_id:
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
    message = {"message_id": id} if len(read.factories) > 1 else {}
    return [
        Append(
            key=f"{key}:{place}:{index}",
            block=piece(origin=_origin(line, place, time, again=index > 0), **message),
            source_id=id,
        )
        for index, piece in enumerate(read.factories)
    ]


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
