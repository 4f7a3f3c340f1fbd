"""Implements the verb `records`: a program's own state by name."""

import json
from base64 import b64encode
from collections.abc import Iterable
from functools import partial
from typing import Any

from ....domain.errors import InvalidSettingError
from ...runtime.sessions.session_records import Record, SessionRecords
from ..command_line.options import SESSION, read_input, read_input_json
from ..command_line.printing import (
    clip_text,
    format_count,
    format_time,
    pick,
    print_rows,
    print_text,
    write_raw,
)
from ..command_line.sessions import name_to_json, open_call_session
from ..command_line.verbs import Answer, Invocation, argument, flag, option

_EXCERPT_CHARACTERS = 60


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
