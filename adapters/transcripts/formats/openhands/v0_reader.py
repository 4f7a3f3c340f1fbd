"""Reads sessions of older OpenHands versions: lists of actions and observations."""

from collections.abc import Iterator
from typing import Any

from ..json_lines import NestedTooDeeplyError, SourceLine
from ..reading.entry_steps import digest_text, make_line_problem
from ..reading.fields import MalformedError, json_name
from ..source import TranscriptSource
from ..steps import EntryEnd, ImportStep, RawEntry, SessionStart, SourceProblem
from .v0_events import FORMAT_NAME, EventSteps, V0EventReader

__all__ = ["FORMAT_NAME", "LINE_ENTRY", "read", "recognizes"]

LINE_ENTRY = "line"
"""The type of the entry around the events, if a line is a session."""


def recognizes(source: TranscriptSource) -> bool:
    """Return whether this is a file with a session per line, or one session's list of events."""
    if source.is_folder:
        return False
    if isinstance(source.first_line, dict):
        return any(_is_session(value) for value in source.first_values)
    document = source.document
    events = document.value if document else None
    if isinstance(events, dict):
        return _is_session(events)
    return isinstance(events, list) and any(map(_is_event, events[:8]))


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    if isinstance(source.first_line, dict):
        for line in source.read_lines():
            yield from _read_line(line)
        return
    document = source.document
    if document is None or document.problem:
        yield SourceProblem(1, document.problem or "no JSON" if document else "no JSON")
        yield EntryEnd("error", document.end if document else 0)
    elif isinstance(document.value, dict):
        yield from _read_line(document)
    else:
        events = list(document.value)
        yield SessionStart(make_v0_key("openhands", events), source.stem)
        yield from _read_events(events, document)


def make_v0_key(name: str, events: list[Any]) -> str:
    """Return a session's key from its first events, since the file has no id."""
    match events:
        case [{"id": id, "timestamp": time, **more}, *_]:
            told = f"{id}\n{time}\n{more.get('message')}"
        case _:
            told = ""
    return f"{name}-{digest_text(told)}"


def _read_line(line: SourceLine) -> Iterator[ImportStep]:
    if line.problem:
        yield make_line_problem(line, line.problem)
        yield EntryEnd("error", line.end)
        return
    match line.value:
        case {"history": list(events), **rest}:
            pass
        case other:
            got = "no history" if isinstance(other, dict) else json_name(other)
            yield make_line_problem(line, f"expected a session, got {got}")
            yield EntryEnd("error", line.end)
            return
    name = rest.get("instance_id")
    known = name if isinstance(name, str) and name else "openhands"
    yield SessionStart(make_v0_key(known, events), known)
    try:
        raw = line.to_json(rest)
    except NestedTooDeeplyError as error:
        yield SourceProblem(line.number, str(error))
        yield EntryEnd("error", line.end)
    else:
        yield RawEntry(f"line:{digest_text(raw)}", LINE_ENTRY, raw)
        yield EntryEnd("imported", line.end)
    yield from _read_events(events, line)


def _read_events(events: list[Any], line: SourceLine) -> Iterator[ImportStep]:
    reader = V0EventReader(line)
    for number, event in enumerate(events, 1):
        raw: str | None = None
        try:
            raw = line.to_json(event)
            read = reader.read(event, number, f"{number}:{digest_text(raw)}", raw)
        except (MalformedError, NestedTooDeeplyError) as error:
            key = f"{number}:{digest_text(raw)}" if raw else None
            yield SourceProblem(number, str(error), key, raw)
            read = EventSteps([], "error")
        yield from read.steps
        yield EntryEnd(read.outcome, line.end, read.answers)


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
