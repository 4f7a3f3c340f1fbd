"""Appends blocks and responses, each once; views show the ends of results that are too large."""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple, cast
from uuid import uuid5

from ....domain.blocks import AnyBlock, Text, ToolResult
from ....domain.compaction import MAIN_LINEAGE
from ....domain.compaction_events import Trim
from ....domain.errors import InvalidPositionError, InvalidSettingError
from ....domain.hooks import CompactionEventKind
from ....domain.native_item import Item
from ....domain.ranges import Ranges
from ....domain.session import Session
from ....domain.session_events import Ends, ToolCalled, ToolReturned
from ....domain.token_estimate import CHARS_PER_TOKEN
from ....domain.trims import MIN_SHOWN_TOKENS, count_byte_tokens, find_ends, trim_text
from ....projections.history_view import HistoryView
from ...storage.event_log.log_tables import AppendKey
from ...storage.event_log.storage_errors import translate_storage_errors
from ..compaction.event_sink import CompactionEventSink, tool_response_truncated
from .recalled_blocks import RecalledBlock, read_recalled
from .session_log import SessionLog, make_call_fields, make_used_key_error


class AppendResult(NamedTuple):
    """Where an append stands: the positions of its first and last block."""

    first: int
    last: int
    is_repeated: bool = False
    """The key was used before: nothing was stored, and this is what was stored then."""


def append_blocks(
    log: SessionLog,
    blocks: Sequence[AnyBlock | Item],
    *,
    key: str | None,
    keys: Sequence[str] | None,
    expect: int | None,
) -> AppendResult:
    """Store blocks and items in one transaction; see `StoredSession.append`."""
    if not blocks:
        raise InvalidPositionError("nothing to append: give at least one block")
    if keys is not None and (key is not None or not len(set(keys)) == len(keys) == len(blocks)):
        raise InvalidSettingError(
            f"keys: {len(keys)} for {len(blocks)} blocks; give each block a key of its own, and"
            " the append no `key`"
        )

    shown = [
        _preview_results(one.blocks if isinstance(one, Item) else (one,), log) for one in blocks
    ]
    shortened: list[int] = []
    new_keys: list[AppendKey] = []

    def decide(session: Session) -> AppendResult:
        shortened.clear()
        new_keys.clear()
        positions: list[int] = []
        for index, (given, ends) in enumerate(zip(blocks, shown, strict=True)):
            if keys and (known := log.events.select_key(session.id, keys[index])):
                _check_same(log, known, [given])
                positions += known.first, known.last
                continue
            if isinstance(given, Item):
                stored = session.append_item(given, ends)
            else:
                stored = [session.append(given, ends[0])]
            positions += stored
            shortened.extend(compress(stored, ends))
            if keys:
                new_keys.append(AppendKey(session.id, keys[index], stored[0], stored[-1]))
        is_repeated = keys is not None and not new_keys
        return AppendResult(min(positions), max(positions), is_repeated)

    with translate_storage_errors(log.context.name):
        done = _store(log, decide, blocks, key, expect, new_keys)
        if shortened and not done.is_repeated:
            _notify_truncated(log, Ranges.of(shortened))
    return done


def append_response(
    log: SessionLog,
    response: object,
    *,
    view: HistoryView | None,
    renderer: str | None,
    key: str | None,
    expect: int | None,
    **reported: float | None,
) -> AppendResult:
    """Store a response and its call in one transaction; see `StoredSession.append_response`."""
    from .responses import read_response  # noqa: PLC0415 - start-up time

    # The same response again has the same ids, also where they are made here.
    read = read_response(response, None if key is None else uuid5(log.id, key).hex)
    with translate_storage_errors(log.context.name):
        sent = make_call_fields(view or log.reader().read_view(), renderer or read.renderer)
    call: dict[str, Any] = {
        "call_id": read.id,
        "model": read.model,
        "usage": read.usage,
        "stop_reason": read.stop_reason,
        **reported,
        **sent,
    }
    if view is None:  # what was sent is not known
        call |= {"renderer": None, "fingerprint": None}

    def decide(session: Session) -> AppendResult:
        positions = [session.append(block) for block in read.blocks]
        session.record_call(call)
        for id, model, usage in read.later_calls:
            # They were sent more than the view, and the caller's figures are those of all.
            own = {"call_id": id, "model": model, "usage": usage, "fingerprint": None}
            nothing = {name: None if figure is None else 0.0 for name, figure in reported.items()}
            session.record_call(call | own | nothing)
        positions = positions or [session.version]
        return AppendResult(positions[0], positions[-1])

    with translate_storage_errors(log.context.name):
        return _store(log, decide, read.blocks, key, expect)


def _store(  # noqa: PLR0917 - the parts of an append
    log: SessionLog,
    decide: Callable[[Session], AppendResult],
    blocks: Sequence[AnyBlock | Item],
    key: str | None,
    expect: int | None,
    keys: Sequence[AppendKey] = (),
) -> AppendResult:
    done = log.decide(decide, key=key, expect=expect, keys=keys)
    if isinstance(done, AppendKey):
        _check_same(log, done, blocks)
        return AppendResult(done.first, done.last, is_repeated=True)
    return done


def _check_same(log: SessionLog, done: AppendKey, blocks: Sequence[AnyBlock | Item]) -> None:
    """Raise ConflictError if an append's key was used for other blocks than these."""
    stored = read_recalled(log.events, log.chain(), Ranges.span(done.first, done.last))
    if not _are_same_blocks(stored, blocks):
        raise make_used_key_error(done)


def _are_same_blocks(stored: Iterable[RecalledBlock], given: Iterable[AnyBlock | Item]) -> bool:
    """Return whether blocks and items were stored as they are given; message ids do not count.

    An item of several blocks gets an id of its own where it is stored.
    """
    return [(_drop_message_id(one.block), one.item) for one in stored] == [
        (_drop_message_id(block), item)
        for one in given
        for block, item in (
            [*((block, None) for block in one.blocks[:-1]), (one.blocks[-1], json.loads(one.text))]
            if isinstance(one, Item)
            else [(one, None)]
        )
    ]


def _drop_message_id(block: AnyBlock) -> AnyBlock:
    return block.model_copy(update={"message_id": None})


_MAX_BYTES_PER_CHARACTER = 4
"""The most bytes that a character may have."""


def _preview_results(blocks: Iterable[AnyBlock], log: SessionLog) -> list[Ends | None]:
    """Return the previews that views show of appended blocks; None shows a block whole.

    Blocks with more than text stay whole, since half an image is useless. Settings are read only if
    a block may need them, as most appends do not.
    """
    return [_find_ends(block, log) for block in blocks]


def _find_ends(block: AnyBlock, log: SessionLog) -> Ends | None:
    if not isinstance(block, ToolResult):
        return None
    content, text = block.content, block.text
    if not isinstance(content, str) and not all(isinstance(part, Text) for part in content):
        return None
    if len(text) * _MAX_BYTES_PER_CHARACTER <= MIN_SHOWN_TOKENS * CHARS_PER_TOKEN:
        return None
    context = log.settings.context
    most = context.max_tool_response_tokens if context else None
    return find_ends(text, most) if most is not None else None


def _notify_truncated(log: SessionLog, results: Ranges) -> None:
    store, chain = log.events, log.chain()
    sink = CompactionEventSink(log.listeners, log.key, log.namespace, MAIN_LINEAGE)
    for recorded in store.read(chain, results):
        returned = cast(ToolReturned, recorded.event)
        called = cast(ToolCalled, store.read(chain, Ranges.of([returned.call]))[0].event)
        ends, text = cast(Ends, returned.shown), returned.block.text
        shown = trim_text(text, Trim(position=recorded.position, head=ends.head, tail=ends.tail))
        sink.notify(
            CompactionEventKind.TOOL_RESPONSE_TRUNCATED,
            message=tool_response_truncated(
                called.block.name, count_byte_tokens(text), count_byte_tokens(shown)
            ),
        )
