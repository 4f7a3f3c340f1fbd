"""Implements what an agent calls from shell scripts: its loop, `meter` and `records`."""

import json
from base64 import b64encode
from collections.abc import Iterable
from functools import partial
from typing import Any

from ....domain.context_limit import Color
from ....domain.errors import InvalidSettingError
from ....domain.session_events import Usage
from ....projections.history_view import HistoryView
from ...runtime.agent_loop import AgentLoop
from ...runtime.compaction.event_sink import stats
from ...runtime.sessions.context_meter import measure_context
from ...runtime.sessions.session_records import Record, SessionRecords
from ..command_line.options import (
    LINEAGE,
    REQUEST_FORMAT,
    SESSION,
    STDIN_WORD,
    read_input,
    read_input_json,
    read_input_text,
)
from ..command_line.printing import (
    clip_text,
    format_bar,
    format_count,
    format_time,
    pick,
    print_rows,
    print_text,
    write_raw,
)
from ..command_line.sessions import name_to_json, open_call_session
from ..command_line.verbs import Answer, Invocation, argument, flag, option
from ..command_line.views import answer_view, check_format

MODEL = option("--model NAME", "The model that is asked.")
LIMIT = option("--limit TOKENS", "What a prompt of it may have.", min=1)

TERMINAL_COLORS = {
    Color.GREEN: "green",
    Color.YELLOW: "yellow",
    Color.ORANGE: (255, 135, 0),
    Color.RED: "red",
}
_EXCERPT_CHARACTERS = 60


def prepare(
    call: Invocation,
    session: str = SESSION,
    model: str | None = MODEL,
    limit: int | None = LIMIT,
    form: str | None = REQUEST_FORMAT,
) -> Answer:
    """It is compacted first, if the policy says so."""
    with open_call_session(call, session) as found:
        loop = found.loop(model=model, limit=limit)
        return _answer_view(loop, loop.prepare(), form)


def record_call(
    call: Invocation,
    session: str = SESSION,
    *,
    at: int = option("--at POSITION", "`at` of the view that was sent.", ..., min=1),
    lineage_version: int = option("--lineage-version N", "The view's, as well.", ..., min=0),
    model: str | None = MODEL,
    form: str | None = REQUEST_FORMAT,
    call_id: str | None = option("--call ID", "The provider's name of the answer."),
    uncached: int | None = option("--input", "Tokens of the prompt that no cache held.", min=0),
    cache_read: int | None = option("--cache-read", "Tokens that the cache held.", min=0),
    cache_write: int | None = option("--cache-write", "Tokens that were put into it.", min=0),
    output: int | None = option("--output", "Tokens answered.", min=0),
) -> Answer:
    """Later counts build upon what it reports."""
    reported = (uncached, cache_read, cache_write, output)
    usage = None
    if any(one is not None for one in reported):
        usage = Usage(input=uncached, cache_read=cache_read, cache_write=cache_write, output=output)
    check_format(form)
    with open_call_session(call, session) as found:
        view = found.view(at=at, lineage_version=lineage_version)
        found.loop(model=model).record_call(
            view, usage=usage, call_id=call_id, renderer=form or "neutral"
        )
    context = usage.context if usage else None
    document = {
        **name_to_json(found),
        "at": at,
        "lineage_version": lineage_version,
        "fingerprint": view.fingerprint,
        "context": context,
    }
    size = "" if context is None else f", {context:,} tokens"
    return Answer(document, f"recorded: a call that was sent {found.key} as of #{at}{size}")


def handle_overflow(
    call: Invocation,
    session: str = SESSION,
    error: str = argument("ERROR", "The provider's error; - reads standard input."),
    *,
    model: str | None = MODEL,
    limit: int | None = LIMIT,
    form: str | None = REQUEST_FORMAT,
) -> Answer:
    text = read_input_text(STDIN_WORD) if error == STDIN_WORD else error
    with open_call_session(call, session) as found:
        loop = found.loop(model=model, limit=limit)
        return _answer_view(loop, loop.handle_overflow(text), form)


def meter(
    call: Invocation,
    session: str = SESSION,
    model: str | None = MODEL,
    limit: int | None = LIMIT,
    lineage: str = LINEAGE,
) -> Answer:
    with open_call_session(call, session) as found:
        found.log.check_lineage(lineage)
        read = measure_context(found, model=model, limit=limit, lineage=lineage)
    in_use, counted = read.in_use, stats(read.weighed)
    kinds = ("user_tokens", "assistant_tokens", "tool_result_tokens")
    bar = f"{format_bar(in_use.share)} {in_use.share:.1%}, {in_use.level}"
    phrase = read.limit.source.phrase
    return Answer(
        {
            **name_to_json(found),
            "lineage": lineage,
            **pick(read, "policy tokens=in_use.tokens limit=in_use.limit"),
            **pick(read, "limit_source=limit.source utilisation=in_use.share"),
            **pick(in_use, "level colour=color"),
            **{kind: counted[kind] for kind in kinds},
            "notice": read.notice,
        },
        partial(print_text, bar, fg=TERMINAL_COLORS[in_use.color]),
        f"{in_use.tokens:,} of {in_use.limit:,} tokens are in use ({phrase})",
        *([read.notice] if read.notice else []),
    )


def _answer_view(loop: AgentLoop, view: HistoryView, form: str | None) -> Answer:
    limit, source = loop.request.limit, loop.request.limit_source
    line = f"a prompt may have {limit:,} tokens ({source.phrase})"
    return answer_view(view, form, line, limit=limit, limit_source=source)


def records(
    call: Invocation,
    session: str = SESSION,
    name: str | None = argument("NAME", "The record; without one, all are listed.", None),
    *,
    prefix: str = option("--prefix TEXT", "List only names that begin with it.", ""),
    limit: int = option("--limit N", "How many are listed.", 100, min=1),
    history: bool = flag("--history", "All values that NAME had, newest first."),
    put: str | None = option("--put FILE", "Put the JSON of a file, - for standard input."),
    is_bytes: bool = flag("--bytes", "What is put is bytes, whatever they hold."),
    remove: bool = flag("--remove", "Let NAME have no value any more."),
    key: str | None = option("--key NAME", "Names the put: repeated, it adds nothing."),
    expect: int | None = option(
        "--expect N", "Only if NAME's value is at this position, 0 if it has none.", min=0
    ),
    raw: bool = flag("--raw", "The value byte for byte, with nothing around it."),
) -> Answer:
    if name is None and (history or raw or remove or put is not None):
        raise InvalidSettingError("records takes NAME with --history, --put, --remove and --raw")
    if (put is not None) + remove + history + raw > 1:
        raise InvalidSettingError("records takes one of --history, --put, --remove and --raw")
    with open_call_session(call, session, creates=put is not None) as found:
        about, kept = name_to_json(found), found.records
        if name is None:
            return _list_records(about, kept.newest(prefix, limit=limit))
        if put is not None:
            value = read_input(put) if is_bytes else read_input_json(put)
            position = kept.put(name, value, key=key, expect=expect)
            return Answer(about | {"name": name, "position": position}, f"{name} is at #{position}")
        if remove:
            removed = kept.remove(name, expect=expect)
            line = f"{name} has no value any more" if removed else f"{name} has no value"
            return Answer(about | {"name": name, "removed": removed}, line, is_good=removed)
        if history:
            return _list_records(about, kept.history(name, limit=limit))
        return _show_record(about, kept, name, raw=raw)


def _list_records(about: dict[str, Any], found: Iterable[Record]) -> Answer:
    listed = list(found)
    rows = [
        {
            "name": one.name,
            "position": f"#{one.position}",
            "put": format_time(one.put_at),
            "value": clip_text(_format_value(one), _EXCERPT_CHARACTERS),
        }
        for one in listed
    ]
    document = about | {"records": list(map(_record_to_json, listed))}
    return Answer(document, partial(print_rows, rows), format_count(len(listed), "record"))


def _show_record(about: dict[str, Any], kept: SessionRecords, name: str, *, raw: bool) -> Answer:
    found = kept.get(name)
    if found is None:
        return Answer(about | {"record": None}, f"{name!r} has no value.", is_good=False)
    value = partial(print_text, _format_value(found))
    show = partial(write_raw, _encode_value(found)) if raw else value
    return Answer(about | {"record": _record_to_json(found)}, show)


def _record_to_json(one: Record) -> dict[str, Any]:
    value = one.value
    said = {"base64": b64encode(value).decode()} if isinstance(value, bytes) else {"value": value}
    about = pick(one, "name position removed=is_removed")
    return about | {"put_at": one.put_at.isoformat()} | said


def _format_value(one: Record) -> str:
    if one.is_removed:
        return "[removed]"
    if isinstance(one.value, bytes):
        return f"[{format_count(len(one.value), 'byte')}]"
    return json.dumps(one.value, ensure_ascii=False)


def _encode_value(one: Record) -> bytes:
    if isinstance(one.value, bytes):
        return one.value
    return f"{_format_value(one)}\n".encode("utf-8", "surrogatepass")
