"""Reads a mini-SWE-agent trajectory: one object, or in older versions a bare list."""

from collections.abc import Iterator
from typing import Any

from ..json_lines import NestedTooDeeplyError, SourceLine
from ..reading.chat_content import drop_cache_marks
from ..reading.entry_steps import digest_text
from ..reading.fields import MalformedError
from ..source import TranscriptSource
from ..steps import EntryEnd, ImportStep, RawEntry, SessionStart, SourceProblem, UnknownEntry
from .bash_messages import has_bash_messages
from .messages import FORMAT_NAME, MiniSweMessageReader

__all__ = ["FORMAT_NAME", "MINI_SWE_AGENT_ENTRY", "read", "recognizes"]

MINI_SWE_AGENT_ENTRY = "trajectory"


def recognizes(source: TranscriptSource) -> bool:
    """Return whether this is a trajectory: it says so, or is a list of messages with commands."""
    if source.is_folder or not _is_candidate(source):
        return False
    document = source.document
    match document.value if document else None:
        case {"trajectory_format": str(name), "messages": list()}:
            return name.startswith(FORMAT_NAME)
        case {"info": {"mini_version": _} | {"config": _}, "messages": list()}:
            return True
        case list(messages):
            return has_bash_messages(messages)
        case _:
            return False


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    """Yield the messages one by one, then the fields around them."""
    document = source.document
    match document.value if document else None:
        case {"messages": list(messages)} if document:
            rest = {name: one for name, one in document.value.items() if name != "messages"}
            yield from _read_trajectory(messages, rest, source, document)
        case list(messages) if document:
            yield from _read_trajectory(messages, None, source, document)
        case _:
            problem = document.problem if document else None
            yield SourceProblem(1, problem or "expected an object with messages")
            yield EntryEnd("error", document.end if document else 0)


def _read_trajectory(
    messages: list[Any], rest: dict[str, Any] | None, source: TranscriptSource, document: SourceLine
) -> Iterator[ImportStep]:
    around = rest or {}
    named = around.get("instance_id")
    title = named if isinstance(named, str) and named else source.stem
    yield SessionStart(_make_key(named, messages, document), title)
    reader = MiniSweMessageReader(document, model=_find_model(around))
    for number, message in enumerate(messages, 1):
        key = None
        raw = None
        try:
            raw = document.to_json(message)
            key = f"{number}:{digest_text(document.to_json(drop_cache_marks(message)))}"
            steps = reader.read(message, number, key, raw)
        except (MalformedError, NestedTooDeeplyError) as error:
            yield SourceProblem(number, f"messages: {error}", key, raw)
            yield EntryEnd("error", document.end)
            continue
        yield from steps
        unknown = any(isinstance(step, UnknownEntry) for step in steps)
        yield EntryEnd("unknown" if unknown else "imported", document.end)
    if rest is not None:
        yield from _read_remainder(rest, document)


def _read_remainder(rest: dict[str, Any], document: SourceLine) -> Iterator[ImportStep]:
    try:
        raw = document.to_json(rest)
    except NestedTooDeeplyError as error:
        yield SourceProblem(1, str(error))
        yield EntryEnd("error", document.end)
        return
    yield RawEntry(f"around:{digest_text(raw)}", MINI_SWE_AGENT_ENTRY, raw)
    yield EntryEnd("imported", document.end)


def _make_key(named: Any, messages: list[Any], document: SourceLine) -> str:
    """Return a session's key from its first messages, since the file has no id of the run."""
    began: list[Any] = [named]
    for message in messages:
        began.append(drop_cache_marks(message))
        if isinstance(message, dict) and message.get("role") == "assistant":
            break
    try:
        told = document.to_json(began)
    except NestedTooDeeplyError:
        told = document.digest
    return f"{FORMAT_NAME}-{digest_text(told)}"


def _find_model(around: dict[str, Any]) -> str | None:
    match around:
        case {"info": {"config": {"model": {"model_name": str(model)}}}}:
            return model
        case _:
            return None


def _is_candidate(source: TranscriptSource) -> bool:
    first = source.first_line
    return not isinstance(first, dict) or "messages" in first
