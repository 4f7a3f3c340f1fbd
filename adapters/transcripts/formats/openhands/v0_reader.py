"""Reads sessions of OpenHands before its SDK: lists of actions and observations."""

from collections.abc import Iterator
from typing import Any

from ..json_lines import Line, NestedTooDeeplyError
from ..reading.entry_steps import digest_of, refused
from ..reading.fields import MalformedError, json_name
from ..source import Source
from ..steps import Aside, Begin, EntryRead, Problem, Step
from .v0_events import NAME, Events, Read

__all__ = ["LINE", "NAME", "read", "recognises"]

LINE = "line"
"""The type of what stands around the events, on a line that is a session."""


def recognises(source: Source) -> bool:
    """Whether this is a file of sessions, one a line, or one session's list of events."""
    if source.is_folder:
        return False
    if isinstance(source.first_line, dict):
        return any(_is_session(value) for value in source.first)
    document = source.document
    events = document.value if document else None
    if isinstance(events, dict):
        return _is_session(events)
    return isinstance(events, list) and any(map(_is_event, events[:8]))


def read(source: Source) -> Iterator[Step]:
    """Every session of the file."""
    if isinstance(source.first_line, dict):
        for line in source.lines():
            yield from _line(line)
        return
    document = source.document
    if document is None or document.problem:
        yield Problem(1, document.problem or "no JSON" if document else "no JSON")
        yield EntryRead("error", document.end if document else 0)
    elif isinstance(document.value, dict):
        yield from _line(document)
    else:
        events = list(document.value)
        yield Begin(key_of("openhands", events), source.stem)
        yield from _events(events, document)


def key_of(name: str, events: list[Any]) -> str:
    """A session's key: the file says no id, but when and how it began."""
    match events:
        case [{"id": id, "timestamp": time, **more}, *_]:
            told = f"{id}\n{time}\n{more.get('message')}"
        case _:
            told = ""
    return f"{name}-{digest_of(told)}"


def _line(line: Line) -> Iterator[Step]:
    if line.problem:
        yield refused(line, line.problem)
        yield EntryRead("error", line.end)
        return
    match line.value:
        case {"history": list(events), **rest}:
            pass
        case other:
            got = "no history" if isinstance(other, dict) else json_name(other)
            yield refused(line, f"expected a session, got {got}")
            yield EntryRead("error", line.end)
            return
    name = rest.get("instance_id")
    known = name if isinstance(name, str) and name else "openhands"
    yield Begin(key_of(known, events), known)
    try:
        raw = line.json(rest)
    except NestedTooDeeplyError as error:
        yield Problem(line.number, str(error))
        yield EntryRead("error", line.end)
    else:
        yield Aside(f"line:{digest_of(raw)}", LINE, raw)
        yield EntryRead("imported", line.end)
    yield from _events(events, line)


def _events(events: list[Any], line: Line) -> Iterator[Step]:
    reader = Events(line)
    for number, event in enumerate(events, 1):
        raw: str | None = None
        try:
            raw = line.json(event)
            read = reader.read(event, number, f"{number}:{digest_of(raw)}", raw)
        except (MalformedError, NestedTooDeeplyError) as error:
            key = f"{number}:{digest_of(raw)}" if raw else None
            yield Problem(number, str(error), key, raw)
            read = Read([], "error")
        yield from read.steps
        yield EntryRead(read.outcome, line.end, read.answers)


def _is_session(value: Any) -> bool:
    match value:
        case {"history": list(events), "instance_id": _}:
            return not events or any(map(_is_event, events[:8]))
        case _:
            return False


def _is_event(value: Any) -> bool:
    match value:
        case {"id": int(), "timestamp": str(), "source": _, "action": str(), "args": dict()}:
            return True
        case {"id": int(), "timestamp": str(), "source": _, "observation": str(), "content": _}:
            return True
        case _:
            return False
