"""Reads a trajectory of mini-SWE-agent: one object, or in older versions a bare list."""

from collections.abc import Iterator
from typing import Any

from ..json_lines import Line, NestedTooDeeplyError
from ..reading.chat_content import without_marks
from ..reading.entry_steps import digest_of
from ..reading.fields import MalformedError
from ..source import Source
from ..steps import Aside, Begin, EntryRead, Problem, Step, Unknown
from .messages import NAME, Messages
from .talk import is_bash_talk

__all__ = ["AROUND", "NAME", "read", "recognises"]

AROUND = "trajectory"
"""The type of what stands around the messages."""


def recognises(source: Source) -> bool:
    """Whether this is a trajectory: one that says so, or a list of messages with commands."""
    if source.is_folder or not _may_be(source):
        return False
    document = source.document
    match document.value if document else None:
        case {"trajectory_format": str(name), "messages": list()}:
            return name.startswith(NAME)
        case {"info": {"mini_version": _} | {"config": _}, "messages": list()}:
            return True
        case list(messages):
            return is_bash_talk(messages)
        case _:
            return False


def read(source: Source) -> Iterator[Step]:
    """The messages one by one, then what stands around them."""
    document = source.document
    match document.value if document else None:
        case {"messages": list(messages)} if document:
            rest = {name: one for name, one in document.value.items() if name != "messages"}
            yield from _trajectory(messages, rest, source, document)
        case list(messages) if document:
            yield from _trajectory(messages, None, source, document)
        case _:
            problem = document.problem if document else None
            yield Problem(1, problem or "expected an object with messages")
            yield EntryRead("error", document.end if document else 0)


def _trajectory(
    messages: list[Any], rest: dict[str, Any] | None, source: Source, document: Line
) -> Iterator[Step]:
    around = rest or {}
    named = around.get("instance_id")
    title = named if isinstance(named, str) and named else source.stem
    yield Begin(_key(named, messages, document), title)
    reader = Messages(document, model=_model(around))
    for number, message in enumerate(messages, 1):
        key = None
        raw = None
        try:
            raw = document.json(message)
            key = f"{number}:{digest_of(document.json(without_marks(message)))}"
            steps = reader.read(message, number, key, raw)
        except (MalformedError, NestedTooDeeplyError) as error:
            yield Problem(number, f"messages: {error}", key, raw)
            yield EntryRead("error", document.end)
            continue
        yield from steps
        unknown = any(isinstance(step, Unknown) for step in steps)
        yield EntryRead("unknown" if unknown else "imported", document.end)
    if rest is not None:
        yield from _rest(rest, document)


def _rest(rest: dict[str, Any], document: Line) -> Iterator[Step]:
    try:
        raw = document.json(rest)
    except NestedTooDeeplyError as error:
        yield Problem(1, str(error))
        yield EntryRead("error", document.end)
        return
    yield Aside(f"around:{digest_of(raw)}", AROUND, raw)
    yield EntryRead("imported", document.end)


def _key(named: Any, messages: list[Any], document: Line) -> str:
    """A session's key: the file says no id of the run, but how it began."""
    began: list[Any] = [named]
    for message in messages:
        began.append(without_marks(message))
        if isinstance(message, dict) and message.get("role") == "assistant":
            break
    try:
        told = document.json(began)
    except NestedTooDeeplyError:
        told = document.digest
    return f"{NAME}-{digest_of(told)}"


def _model(around: dict[str, Any]) -> str | None:
    match around:
        case {"info": {"config": {"model": {"model_name": str(model)}}}}:
            return model
        case _:
            return None


def _may_be(source: Source) -> bool:
    first = source.first_line
    return not isinstance(first, dict) or "messages" in first
