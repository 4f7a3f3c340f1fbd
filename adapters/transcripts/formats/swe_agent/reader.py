"""Reads a trajectory of SWE-agent: its history, its steps, and what stands around them."""

from collections.abc import Iterator
from typing import Any

from ..json_lines import Line, NestedTooDeeplyError
from ..reading.chat_content import without_marks
from ..reading.entry_steps import digest_of
from ..reading.fields import MalformedError
from ..source import Source
from ..steps import Aside, Begin, EntryRead, Problem, Step, Unknown
from .history import NAME, History
from .trajectory import Trajectory, Unanswered

__all__ = ["AROUND", "NAME", "read", "recognises"]

AROUND = "trajectory"
"""The type of what stands around history and steps."""


def recognises(source: Source) -> bool:
    """Whether this is a trajectory: a JSON object that holds steps and a history."""
    if source.is_folder or not _may_be(source):
        return False
    document = source.document
    match document.value if document else None:
        case {"trajectory": list(), "history": list(), "info": dict()}:
            return True
        case _:
            return False


def read(source: Source) -> Iterator[Step]:
    """The history message by message, then the steps, then the rest."""
    document = source.document
    if document is None or document.problem or not isinstance(document.value, dict):
        problem = document.problem if document else None
        yield Problem(1, problem or "expected an object")
        yield EntryRead("error", document.end if document else 0)
        return
    value = document.value
    history = value["history"] if isinstance(value.get("history"), list) else []
    steps = value["trajectory"] if isinstance(value.get("trajectory"), list) else []
    rest = {name: one for name, one in value.items() if name not in ("history", "trajectory")}
    yield Begin(_key(rest, history, document), source.stem)
    reader = History(document)
    yield from _history(reader, history, document)
    run = Trajectory(history, reader.lost, document, _last_answer(reader, rest))
    yield from _steps(steps, run)
    yield from _rest(rest, document)


def _last_answer(reader: History, rest: dict[str, Any]) -> Unanswered | None:
    """The call that ended the run: of its answer only the step tells."""
    match rest.get("info"):
        case {"exit_status": str(status)} if status and reader.open:
            return Unanswered(reader.spoke, reader.open[0])
        case _:
            return None


def _history(reader: History, history: list[Any], document: Line) -> Iterator[Step]:
    for number, message in enumerate(history, 1):
        key = None
        raw = None
        try:
            raw = document.json(message)
            key = f"{number}:{digest_of(document.json(without_marks(message)))}"
            steps = reader.read(message, number, key, raw)
        except (MalformedError, NestedTooDeeplyError) as error:
            if raw is None:
                reader.lost.add(number)
            yield Problem(number, f"history: {error}", key, raw)
            yield EntryRead("error", document.end)
            continue
        yield from steps
        unknown = any(isinstance(step, Unknown) for step in steps)
        yield EntryRead("unknown" if unknown else "imported", document.end)


def _steps(steps: list[Any], run: Trajectory) -> Iterator[Step]:
    spoken = (
        number
        for number, message in enumerate(run.history, 1)
        if isinstance(message, dict) and message.get("role") == "assistant"
    )
    for number, step in enumerate(steps, 1):
        try:
            read = list(run.read(step, number, next(spoken, None)))
        except (MalformedError, NestedTooDeeplyError) as error:
            raw = _json(run.document, step)
            key = f"trajectory:{number}:{digest_of(raw)}" if raw else None
            yield Problem(number, f"trajectory: {error}", key, raw, is_part=True)
            yield EntryRead("error", run.document.end)
            continue
        yield from read
        yield EntryRead("imported", run.document.end)


def _json(document: Line, step: Any) -> str | None:
    try:
        return document.json(step)
    except NestedTooDeeplyError:
        return None


def _rest(rest: dict[str, Any], document: Line) -> Iterator[Step]:
    try:
        raw = document.json(rest)
    except NestedTooDeeplyError as error:
        yield Problem(1, str(error))
        yield EntryRead("error", document.end)
        return
    yield Aside(f"around:{digest_of(raw)}", AROUND, raw)
    yield EntryRead("imported", document.end)


def _key(rest: dict[str, Any], history: list[Any], document: Line) -> str:
    """A session's key: the file says no id, but what was run, and how it began."""
    began: list[Any] = [rest.get("environment"), rest.get("replay_config")]
    for message in history:
        began.append(without_marks(message))
        if isinstance(message, dict) and message.get("role") == "assistant":
            break
    try:
        told = document.json(began)
    except NestedTooDeeplyError:
        told = document.digest
    return f"{NAME}-{digest_of(told)}"


def _may_be(source: Source) -> bool:
    first = source.first_line
    return first is None or (isinstance(first, dict) and "trajectory" in first)
