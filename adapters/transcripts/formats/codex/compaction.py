"""What a `compacted` line says: the new context, of which most was in the old one."""

from dataclasses import dataclass, field, replace

from .....domain.blocks import Block, Kind, Origin
from .....domain.compaction_events import Trigger
from .....projections.rendering import summary_message
from ..json_lines import Line
from ..reading.fields import Item, an_object, take_optional
from ..steps import Append, Compacted, Instead, Shortened, Step
from ..summary_mark import summary_of
from .context import Context, answer_in, hash_of, source_id
from .entries import NAME
from .items import read_item
from .read import Read, kind_of

RESTATED = "replacement_history"
"""The type of the entry that blocks come from which a compaction brought into context.

The line of the compaction holds them, and is kept as it is.
"""

ENCRYPTED = "the summary is encrypted"
NO_SUMMARY = "there is no summary"
NOT_SAID_WHAT = "it does not say what it kept"

_NOT_BY_MODEL = (Kind.USER, Kind.DEVELOPER)


@dataclass(slots=True)
class Compaction:
    """A compaction, until it is known how much it left."""

    key: str
    time: str | None
    summary: str | None
    kept: tuple[str, ...]
    partial: str | None
    pre_tokens: int | None
    follows: bool
    """Whether there was anything to compact."""
    line: Line
    instead: tuple[Instead, ...] = ()
    """Answers that it kept shortened."""
    is_whole: bool = False
    """Whether it kept all that there was."""
    brought: list[Append] = field(default_factory=list)
    """What is in the new context and was not in the old one."""

    def steps(self, post_tokens: int | None = None) -> list[Step]:
        """The boundary, and what came into context with it."""
        if self.instead and self.is_whole and not self.summary:
            return [self._shortened(post_tokens), *self.brought]
        if self.follows:
            compacted = replace(
                replaced_by(self.summary, self.key, self.time),
                kept=self.kept,
                pre_tokens=self.pre_tokens,
                post_tokens=post_tokens or None,
                partial=self.partial,
                instead=self.instead,
            )
            return [compacted, *self.brought]
        if not self.summary:
            return [*self.brought]
        return [inherited(self.summary, self.key, self.line, self.time), *self.brought]

    def _shortened(self, post_tokens: int | None) -> Shortened:
        return Shortened(
            f"{self.key}:shortened",
            Trigger.THRESHOLD,
            self.instead,
            pre_tokens=self.pre_tokens,
            post_tokens=post_tokens or None,
            source_time=self.time,
        )


def replaced_by(summary: str | None, key: str, time: str | None) -> Compacted:
    """All that precedes left."""
    return Compacted(
        key=f"{key}:compacted",
        trigger=Trigger.THRESHOLD,  # where the source does not say, nobody asked for it
        summary=summary,
        source_time=time,
    )


def inherited(summary: str, key: str, line: Line, time: str | None) -> Append:
    """Where nothing precedes a summary, it tells what another rollout holds."""
    told = Block.developer(summary, name="summary", origin=_origin(line, 0, time))
    return Append(f"{key}:summary", told)


def summary_in(read: Read, item: Item) -> str | None:
    """The summary that an item is, written by cutbank, if it is that and nothing else."""
    if len(read.pieces) != 1 or read.pieces[0].keywords.get("kind") not in _NOT_BY_MODEL:
        return None
    found = summary_of(item, read.pieces[0].keywords.get("text"))
    return found.text if found else None


def compaction_of(
    payload: Item, line: Line, key: str, context: Context, *, time: str | None, size: int | None
) -> Compaction:
    """What the line says; the context becomes what it is after the compaction."""
    message = take_optional(payload, "message", str) or ""
    history = take_optional(payload, "replacement_history", list)
    items = [an_object(item, "replacement_history: ") for item in history or []]
    items = [item for item in items if not (message and _text_of(item) == message)]
    read = [read_item(item, line) for item in items]
    hashes = [hash_of(item, line) for item in items]
    wrapped = summary_message.recognised(message)
    partial = None
    if history is None:
        partial = NOT_SAID_WHAT
    elif any(item.get("encrypted_content") for item in items):
        partial = ENCRYPTED
    elif not message:
        partial = NO_SUMMARY
    answers = [answer_in(item, line) for item in items]
    kept: list[int | None] = [*context.prompts()]
    instead: list[Instead] = []
    if history is not None:
        shown = [_shown(one) for one in read]
        matched = [
            index if index is None or context.answers[index] == answer or text else None
            for index, answer, text in zip(context.matched(hashes), answers, shown, strict=True)
        ]
        kept = _kept(matched, read)
        for index, answer, text, one in zip(kept, answers, shown, read, strict=True):
            if index is not None and text and context.answers[index] != answer:
                instead.append(Instead(context.id(index), text, one.call))
    found = Compaction(
        key=key,
        time=time,
        summary=wrapped.text if wrapped else message or None,
        kept=tuple(context.id(index) for index in kept if index is not None),
        partial=partial,
        pre_tokens=size,
        follows=len(context) > 0,
        line=line,
        instead=tuple(instead),
        is_whole=len(context) == sum(index is not None for index in kept),
    )
    context.keep([index for index in kept if index is not None])
    for place, (one, hashed, answer) in enumerate(zip(read, hashes, answers, strict=True), 1):
        if kept[place - 1] is None and one.pieces:
            context.add(hashed, answer, line.number, place, kind_of(one))
            found.brought += _brought(one, line, key, place, time)
    return found


def _shown(read: Read) -> str | None:
    """The text of an answer that is nothing but text."""
    match [piece.keywords.get("content") for piece in read.pieces]:
        case [str(text)] if read.call:
            return text or None
        case _:
            return None


def _kept(matched: list[int | None], read: list[Read]) -> list[int | None]:
    """A call and its answer were both kept, or are both new."""
    broken = {one.call for one, index in zip(read, matched, strict=True) if index is None}
    return [
        None if one.call and one.call in broken else index
        for one, index in zip(read, matched, strict=True)
    ]


def _brought(read: Read, line: Line, key: str, place: int, time: str | None) -> list[Append]:
    id = source_id(line.number, place)
    message = {"message_id": id} if len(read.pieces) > 1 else {}
    return [
        Append(
            key=f"{key}:{place}:{index}",
            block=piece(origin=_origin(line, place, time, again=index > 0), **message),
            source_id=id,
        )
        for index, piece in enumerate(read.pieces)
    ]


def _origin(line: Line, place: int, time: str | None, *, again: bool = False) -> Origin:
    return Origin(
        format=NAME,
        id=f"{RESTATED}:{place}",
        time=time,
        entry=None if again else f'{{"type":"{RESTATED}"}}',
        line=line.number,
    )


def _text_of(item: Item) -> str | None:
    """The text of a message that holds nothing else."""
    match item:
        case {"type": "message", "content": [{"text": str(text)}]}:
            return text
        case _:
            return None
