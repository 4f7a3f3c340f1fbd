"""Writes a session as messages: as they came, or as its view is sent to a model."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .....domain.blocks import NOT_SENT, AnyBlock, Block, Kind
from .....domain.compaction import RECORDED
from .....projections.entry import Entry as Shown
from .....projections.history_view import HistoryView
from .....projections.rendering import sendable, summary_message
from .....projections.rendering.catalog import PLAIN
from ..content.filling import filled
from ..json_lines import Line
from ..outgoing import Called, Compacted, Entry, Outgoing, Said, entries
from ..reading.fields import Item, MalformedError
from ..summary_mark import MARK, is_summary
from ..writing.as_text import marked_text
from ..writing.own_entries import is_json, is_part
from .conversation import Dialect, system_prompt
from .losses import count_losses
from .reader import BODY, asked_by


def writer(dialect: Dialect) -> Callable[[Outgoing], Iterator[bytes]]:
    """The `write` of the format of that dialect."""

    def write(outgoing: Outgoing) -> Iterator[bytes]:
        came = as_it_came(outgoing, dialect, dialect.name)
        if came is not None:
            body, fields = came.body()
        else:
            body, fields = rendered(outgoing, dialect)
        yield from spelt(body, fields)

    return write


@dataclass
class AsItCame:
    """A session's own messages, put together again."""

    header: Item | None = None
    """What the body says beside its messages; None of a plain array."""
    messages: list[Any] = field(default_factory=list)

    def body(self) -> tuple[Item, dict[str | None, list[Any]]]:
        """The body's fields, and its lists by their names; a plain array's has none."""
        if self.header is None:
            return {}, {None: self.messages}
        rest: Item = dict(self.header["body"])
        lists: dict[str | None, list[Any]] = {}
        left = self.messages
        for name, count in self.header["held"]:
            if count == "text":
                rest[name], left = left[0]["content"], left[1:]
            else:
                lists[name], left = left[:count], left[len(left[:count]) :]
        return rest, lists


def as_it_came(outgoing: Outgoing, dialect: Dialect, own: str) -> AsItCame | None:
    """The messages as they were imported in the format `own`.

    None where there is anything else to be written: then all of it is rendered.
    """
    if outgoing.source != own or outgoing.is_view:
        return None
    came = AsItCame()
    for part in entries(outgoing.parts(), own):
        match part:
            case Called():
                pass
            case Compacted(boundary=boundary):
                if boundary.policy != RECORDED:
                    return None
            case Said(block=block, retracted=retracted):
                if block.kind not in NOT_SENT and not retracted:
                    return None
            case Entry(raw=str(raw), said=(said,)):
                if isinstance(said.block, Block) and said.block.name == BODY:
                    came.header = json.loads(raw)
                elif not said.retracted and not is_part(part) and is_json(raw):
                    came.messages.append(json.loads(raw))
            case Entry(rest=rest, said=said):
                gone = sum(one.retracted for one in said)
                if rest is None or 0 < gone < len(said):
                    return None
                if not gone:
                    blocks = [one.block for one in said if one.block.kind is not Kind.NOTE]
                    came.messages.append(filled(rest, blocks))
    return came if _asks_the_same(outgoing, came, dialect, own) else None


def _asks_the_same(outgoing: Outgoing, came: AsItCame, dialect: Dialect, own: str) -> bool:
    """Whether nobody set the system prompt or the tools anew since the session was imported."""
    body = came.header["body"] if came.header and own == dialect.name else {}
    asked = asked_by(dialect.asking, body)
    prompt = asked.system_prompt
    match came.messages:
        case [dict() as first, *_] if prompt is None:
            prompt = _prompt_of(first, dialect)
        case _:
            pass
    before = (prompt, asked.tools or [], asked.settings or {})
    now = (outgoing.system_prompt, list(outgoing.tools), outgoing.settings)
    # What is stored has null where a file has NaN, which is not JSON and equals nothing.
    return json.dumps(before).replace("NaN", "null") == json.dumps(now)


def _prompt_of(first: Item, dialect: Dialect) -> str | None:
    try:
        return system_prompt(first, list(dialect.pieces(first, Line(1, 0), 1)))
    except MalformedError:
        return None  # the reader took none from it either


def rendered(outgoing: Outgoing, dialect: Dialect) -> tuple[Item, dict[str | None, list[Any]]]:
    """All of it, as the view is sent to a model; what cannot be said is reported as lost."""
    view = outgoing.view if outgoing.is_view else _with_summaries(outgoing, dialect.name)
    summaries = frozenset(_summaries(view))
    view = _worded(view, summaries)
    if outgoing.source not in (None, dialect.name) and view.settings:
        # Another provider's settings mean nothing here, or something else.
        outgoing.lose("request settings", len(view.request_settings))
        view = replace(view, settings=None)
    body = PLAIN[dialect.name](view)
    name = dialect.lists[0]
    messages = _with_marks(body.pop(name), summaries)
    count_losses(outgoing, view, dialect.name, messages)
    return body, {name if body else None: messages}


def spelt(body: Item, lists: dict[str | None, list[Any]]) -> Iterator[bytes]:
    """The JSON text, a message on each line; an array alone where there is nothing beside it."""
    if None in lists:
        yield from _joined(lists[None])
        yield b"\n"
        return
    yield _bytes(json.dumps(body, ensure_ascii=False)[:-1])
    lead = ", " if body else ""
    for name, messages in lists.items():
        yield _bytes(f"{lead}{json.dumps(name)}: ")
        yield from _joined(messages)
        lead = ", "
    yield b"}\n"


def _joined(messages: Iterable[Any]) -> Iterator[bytes]:
    yield b"["
    lead = ""
    for message in messages:
        yield _bytes(lead + json.dumps(message, ensure_ascii=False))
        lead = ",\n"
    yield b"]"


def _bytes(text: str) -> bytes:
    return sendable.text(text).encode()


def _with_summaries(outgoing: Outgoing, provider: str) -> HistoryView:
    """The whole log, each summary where it was made: marked, so that it is known again.

    One that the provider encrypted stands in the log itself, and goes back to it as it came.
    """
    view = outgoing.view
    encrypted = any(_is_compaction(entry.block, provider) for entry in view.entries)
    summaries: list[Shown] = []
    last, turn = 0, 1
    for part in outgoing.parts():
        match part:
            case Said(position=last, turn=turn):
                pass
            case Compacted(boundary=boundary, summary=summary) if summary and not (
                encrypted and boundary.partial
            ):
                text = summary_message.wrapped(summary.text, summary.covers, boundary.hidden)
                block: AnyBlock = Block.developer(text, name="summary")
                summaries.append(Shown(last, block, turn, summary.tokens, b""))
            case _:
                pass
    if not summaries:
        return view
    merged = sorted([*view.entries, *summaries], key=lambda entry: entry.position)
    return replace(view, entries=tuple(merged))


def _is_compaction(block: AnyBlock, provider: str) -> bool:
    item = sendable.item(block.native, provider)
    return item is not None and "compaction" in item["type"]


def _summaries(view: HistoryView) -> Iterator[str]:
    """What the summaries of a view say, as they are sent."""
    yield summary_message.said(view)
    yield from (marked_text(entry.block) for entry in view.entries if is_summary(entry.block))


def _worded(view: HistoryView, summaries: frozenset[str]) -> HistoryView:
    """The view with its summaries in a user's role; a user's copy of one is escaped."""
    entries = tuple(
        replace(entry, block=Block.user(marked_text(entry.block)))
        if is_summary(entry.block)
        else replace(entry, block=Block.user(summary_message.escape(entry.block.text)))
        if entry.block.text in summaries and entry.block.kind is Kind.USER
        else entry
        for entry in view.entries
    )
    return replace(view, entries=entries)


def _with_marks(value: Any, summaries: frozenset[str]) -> Any:
    """Mark what holds the text of a summary: no words that a user pastes have such a field."""
    match value:
        case list():
            return [_with_marks(part, summaries) for part in value]
        case {"role": "user", "content": [*_] as content}:
            return {**value, "content": _with_marks(content, summaries)}
        case {"text": str(text)} | {"role": "user", "content": str(text)} if text in summaries:
            return value | MARK
        case _:
            return value
