"""Reads a trajectory of SWE-agent: its history, its steps, and the fields around them."""

from collections.abc import Iterator
from typing import Any

from ..json_lines import NestedTooDeeplyError, SourceLine
from ..reading.chat_content import drop_cache_marks
from ..reading.entry_steps import digest_text
from ..reading.fields import MalformedError
from ..source import TranscriptSource
from ..steps import EntryEnd, ImportStep, RawEntry, SessionStart, SourceProblem, UnknownEntry
from .history_reader import FORMAT_NAME, SweHistoryReader
from .trajectory_steps import TrajectorySteps, UnansweredCall

__all__ = ["FORMAT_NAME", "SWE_AGENT_ENTRY", "read", "recognizes"]

SWE_AGENT_ENTRY = "trajectory"


def recognizes(source: TranscriptSource) -> bool:
    """Return whether this is a trajectory: a JSON object with steps and a history."""
    if source.is_folder or not _is_candidate(source):
        return False
    document = source.document
    match document.value if document else None:
        case {"trajectory": list(), "history": list(), "info": dict()}:
            return True
        case _:
            return False


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    """Yield the history message by message, then the steps, then the remainder."""
    document = source.document
    if document is None or document.problem or not isinstance(document.value, dict):
        problem = document.problem if document else None
        yield SourceProblem(1, problem or "expected an object")
        yield EntryEnd("error", document.end if document else 0)
        return
    value = document.value
    history = value["history"] if isinstance(value.get("history"), list) else []
    steps = value["trajectory"] if isinstance(value.get("trajectory"), list) else []
    rest = {name: one for name, one in value.items() if name not in ("history", "trajectory")}
    yield SessionStart(_make_key(rest, history, document), source.stem)
    reader = SweHistoryReader(document)
    yield from _read_history(reader, history, document)
    run = TrajectorySteps(history, reader.unkept_messages, document, _find_unanswered(reader, rest))
    yield from _read_steps(steps, run)
    yield from _read_remainder(rest, document)


def _find_unanswered(reader: SweHistoryReader, rest: dict[str, Any]) -> UnansweredCall | None:
    """Return the call that ended the run, whose answer only its step has."""
    match rest.get("info"):
        case {"exit_status": str(status)} if status and reader.open_calls:
            return UnansweredCall(reader.last_model_message, reader.open_calls[0])
        case _:
            return None


def _read_history(
    reader: SweHistoryReader, history: list[Any], document: SourceLine
) -> Iterator[ImportStep]:
    for number, message in enumerate(history, 1):
        key = None
        raw = None
        try:
            raw = document.to_json(message)
            key = f"{number}:{digest_text(document.to_json(drop_cache_marks(message)))}"
            steps = reader.read(message, number, key, raw)
        except (MalformedError, NestedTooDeeplyError) as error:
            if raw is None:
                reader.unkept_messages.add(number)
            yield SourceProblem(number, f"history: {error}", key, raw)
            yield EntryEnd("error", document.end)
            continue
        yield from steps
        unknown = any(isinstance(step, UnknownEntry) for step in steps)
        yield EntryEnd("unknown" if unknown else "imported", document.end)


def _read_steps(steps: list[Any], run: TrajectorySteps) -> Iterator[ImportStep]:
    spoken = (
        number
        for number, message in enumerate(run.history, 1)
        if isinstance(message, dict) and message.get("role") == "assistant"
    )
    for number, step in enumerate(steps, 1):
        try:
            read = list(run.read(step, number, next(spoken, None)))
        except (MalformedError, NestedTooDeeplyError) as error:
            raw = _encode_step(run.document, step)
            key = f"trajectory:{number}:{digest_text(raw)}" if raw else None
            yield SourceProblem(number, f"trajectory: {error}", key, raw, is_part=True)
            yield EntryEnd("error", run.document.end)
            continue
        yield from read
        yield EntryEnd("imported", run.document.end)


def _encode_step(document: SourceLine, step: Any) -> str | None:
    try:
        return document.to_json(step)
    except NestedTooDeeplyError:
        return None


def _read_remainder(rest: dict[str, Any], document: SourceLine) -> Iterator[ImportStep]:
    try:
        raw = document.to_json(rest)
    except NestedTooDeeplyError as error:
        yield SourceProblem(1, str(error))
        yield EntryEnd("error", document.end)
        return
    yield RawEntry(f"around:{digest_text(raw)}", SWE_AGENT_ENTRY, raw)
    yield EntryEnd("imported", document.end)


def _make_key(rest: dict[str, Any], history: list[Any], document: SourceLine) -> str:
    """Return a session's key from its task and first messages, since the file has no id."""
    began: list[Any] = [rest.get("environment"), rest.get("replay_config")]
    for message in history:
        began.append(drop_cache_marks(message))
        if isinstance(message, dict) and message.get("role") == "assistant":
            break
    try:
        told = document.to_json(began)
    except NestedTooDeeplyError:
        told = document.digest
    return f"{FORMAT_NAME}-{digest_text(told)}"


def _is_candidate(source: TranscriptSource) -> bool:
    first = source.first_line
    return first is None or (isinstance(first, dict) and "trajectory" in first)
