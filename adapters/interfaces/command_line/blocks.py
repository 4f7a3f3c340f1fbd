"""Finds blocks by the handles that people write, and formats them as JSON and as text.

`append --blocks` reads what `show` and `recall` write.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from pydantic import ValidationError

from ....domain.blocks import (
    UNSENT_KINDS,
    AnyBlock,
    Block,
    BlockKind,
    Media,
    NativePart,
    Text,
    ToolCall,
    ToolResult,
)
from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import InvalidPositionError, InvalidSettingError
from ....domain.event import find_unknown
from ....domain.ranges import Ranges
from ....domain.settlement import BlockStatus
from ....domain.token_estimate import estimate_block
from ....projections.block_statuses import compute_status_ranges, find_status
from ...runtime.sessions.recalled_blocks import RecalledBlock, read_recalled
from ...runtime.sessions.stored_session import StoredSession
from .printing import format_count, pick

FindNewest = Callable[[int], int]
"""Returns the position of the newest block, or of the one that many blocks before it."""

_NUMBER = r"#?[0-9]{1,15}"
_POINT = re.compile(rf"(?P<number>{_NUMBER})|last(?:-(?P<back>[0-9]{{1,9}}))?", re.IGNORECASE)
_RANGE = re.compile(rf"({_NUMBER})-({_NUMBER})")
_SEPARATOR = re.compile(r"[\s,]+")


def parse_handles(words: Iterable[str], newest: FindNewest) -> Ranges:
    """Return the positions that words name; `newest` is only called for `last`.

    A range is written `3-9`, or `3..9` if one end is `last`: in `last-3` the dash counts back. All
    handles that cutbank prints are accepted.
    """
    named = Ranges()
    for part in filter(None, _SEPARATOR.split(" ".join(words))):
        dashed = _RANGE.fullmatch(part)
        ends = dashed.groups() if dashed else part.split("..", maxsplit=1)
        first, last = (parse_handle(end, newest) for end in (ends[0], ends[-1]))
        if first > last:
            raise InvalidPositionError(f"{part!r} ends before it begins: write {last}-{first}")
        named |= Ranges.span(first, last)
    if not named:
        raise InvalidPositionError("no handle was given: write 12, 3-9 or last")
    return named


def parse_handle(word: str, newest: FindNewest) -> int:
    found = _POINT.fullmatch(word.strip())
    if found is None:
        raise InvalidPositionError(f"{word!r} is not a handle: write 12, '#12', last or last-3")
    if not found["number"]:
        return newest(int(found["back"] or 0))
    if (position := int(found["number"].removeprefix("#"))) < 1:
        raise InvalidPositionError("handles begin at #1")
    return position


def find_position(session: StoredSession, word: str) -> int:
    return parse_handle(word, partial(find_newest, session))


def find_newest(session: StoredSession, back: int = 0) -> int:
    """Return the position of the newest block, or of the one `back` blocks before it."""
    count = 0
    for count, block in enumerate(session.blocks(newest_first=True), 1):
        if count > back:
            return block.position
    name = f"last-{back}" if back else "last"
    raise InvalidPositionError(f"{name} does not exist: session {session.key!r} has {count} blocks")


LoggedBlock = tuple[RecalledBlock, BlockStatus | None, str | None, bool]
"""A block; its status, None if the boundary lacks it, which `verify` reports; the effect of the
next boundary: `pinned`, `unpinned` or `hidden`; and whether it is a call without a result."""


class BlockLog:
    """The current log of one session, read page by page."""

    def __init__(self, session: StoredSession, lineage: str = MAIN_LINEAGE) -> None:
        self.session = session
        self.view = session.view(lineage=lineage)
        reader = session.log.reader(lineage)
        self._history = reader.read_history()[0]
        self.position = self.view.coordinate.position
        self.retracted = reader.read_retracted(self.position)

    def read_between(self, first: int, last: int) -> Iterator[LoggedBlock]:
        if (end := max(first, last)) > self.position:
            raise InvalidPositionError(
                f"#{end} does not exist: the session ends at #{self.position}"
            )
        if first > last:
            raise InvalidPositionError(f"nothing lies between: #{first} comes after #{last}")
        return self._read(Ranges.span(first, last))

    def _read(self, positions: Ranges) -> Iterator[LoggedBlock]:
        view = self.view
        statuses = compute_status_ranges(view.boundary, view.summary, self.retracted, self.position)
        log = self.session.log
        for found in read_recalled(log.events, log.chain(), positions):
            became = find_status(statuses, found.position)
            pending = self._find_pending(found.position, became)
            yield found, became, pending, found.position in self._history.open_calls

    def _find_pending(self, position: int, became: BlockStatus | None) -> str | None:
        if became is BlockStatus.RETRACTED:
            return None
        is_pinned = position in self._history.pinned
        if is_pinned is not (became is BlockStatus.PINNED):
            return "pinned" if is_pinned else "unpinned"
        return "hidden" if position in self._history.hides and not is_pinned else None


_CLASSES: dict[str, type[ToolCall | ToolResult]] = {
    BlockKind.TOOL_CALL: ToolCall,
    BlockKind.TOOL_RESULT: ToolResult,
}


def block_to_json(block: AnyBlock) -> dict[str, Any]:
    fields = block.model_dump(mode="json", exclude_none=True)
    return {"kind": block.kind.value, **fields}


def placed_to_json(one: RecalledBlock) -> dict[str, Any]:
    return {
        **pick(one, "handle position turn kind=block.kind"),
        "tokens": estimate_block(one.block),
    }


def parse_blocks(entries: Any, where: str) -> list[AnyBlock]:
    """Validate a list of blocks; error messages call it `where`."""
    if not isinstance(entries, list) or not entries:
        raise InvalidSettingError(f"{where} must hold a JSON list of blocks, and at least one")
    return [
        _parse_block(entry, f"{where}: block {number}") for number, entry in enumerate(entries, 1)
    ]


def _parse_block(entry: Any, where: str) -> AnyBlock:
    if not isinstance(entry, dict):
        raise InvalidSettingError(f"{where} must be a JSON object")
    fields = dict(entry)
    kind = fields.get("kind")
    if kind in _CLASSES:
        del fields["kind"]
    try:
        block = _CLASSES.get(str(kind), Block).model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "it"
        raise InvalidSettingError(f"{where}: {name}: {first['msg']}") from None
    # A log may hold unknown fields; in a person's input they are a mistake.
    if unknown := find_unknown(block):
        raise InvalidSettingError(f"{where}: {unknown}")
    return block


def format_block_heading(
    position: int,
    block: AnyBlock,
    marks: Iterable[str] = (),
    tokens: int | None = None,
    *,
    brief: bool = False,
) -> str:
    """Return `#12 tool_call Read (call_7), 14 tokens [summarized]`; `brief` omits the call's id."""
    name = block.name if isinstance(block, Block | ToolCall) else None
    words = [f"#{position}", str(block.kind)]
    words += [name] if name else []
    words += [] if brief or isinstance(block, Block) else [f"({block.tool_call_id})"]
    size = format_count(estimate_block(block) if tokens is None else tokens, "token")
    marked = ", ".join(marks)
    return f"{' '.join(words)}, {size}" + (f"  [{marked}]" if marked else "")


def list_marks(
    block: AnyBlock,
    status: BlockStatus | None,
    place: str = "",
    pending: str | None = None,
    *,
    is_open: bool = False,
) -> Iterator[str]:
    """Yield the marks of a block's status; none if it is in the view as it was logged.

    `place` says since when it has this status, as in ` since #12`.
    """
    if status is None:
        yield "lost to the view, run `cutbank verify`"
    elif block.kind in UNSENT_KINDS and status is not BlockStatus.RETRACTED:
        yield "never sent"
    elif status is not BlockStatus.VISIBLE:
        yield f"{status.name.lower()}{place}"
    elif place:
        yield f"visible again{place}"
    if pending:
        yield f"{pending} from the next boundary on"
    yield from format_refusal(block)
    if is_open:
        yield "open"
    if getattr(block, "is_error", False):
        yield "error"


def format_refusal(block: AnyBlock) -> Iterator[str]:
    """Yield the reason why a block is kept raw, if its source could not be read."""
    if block.origin and block.origin.refused:
        yield f"not read: {block.origin.refused}"


def format_block_body(block: AnyBlock) -> Iterator[str]:
    """Yield the content of a block, piece by piece; one line for an image or a document."""
    if isinstance(block, Block):
        if block.text:
            yield block.text
        if block.media:
            yield _describe_media(block.media)
    elif isinstance(block, ToolCall) or isinstance(block.content, str):
        if block.text:
            yield block.text
    else:
        for part in block.content:
            match part:
                case Text():
                    yield part.text
                case Media():
                    yield _describe_media(part)
                case NativePart():
                    yield f"[{part.native.provider} item, {len(part.native.item):,} characters]"


def _describe_media(media: Media) -> str:
    what = f"{media.type} {media.mime}, {len(media.data):,} bytes"
    if media.name:
        what += f", {media.name}"
    return f"[{what}{f', at {media.url}' if media.url else ''}]"
