"""Reads the Agent Trajectory Interchange Format: one JSON object with a list of steps."""

import json
from collections.abc import Iterator
from typing import Any

from .....domain.blocks import Block, Kind, Media, ResultPart, Text, ToolCall, ToolResult
from ..claude_code.entries import classify_user_text
from ..content.placeholders import JsonPath, Placeholder
from ..json_lines import SourceLine
from ..messages.message_file_reader import (
    SessionKeys,
    read_body_steps,
    read_messages,
    report_no_session,
)
from ..messages.message_parts import (
    MalformedPart,
    MessagePart,
    ReadBlock,
    UnknownPart,
    read_item_type,
    read_texts,
    text_path,
)
from ..messages.message_reader import Dialect, MessageReader, RequestFields
from ..reading.fields import JsonDict, MalformedError, get_field, require_field
from ..source import TranscriptSource
from ..steps import EntryEnd, ImportStep, SessionStart

FORMAT_NAME = "atif"
STEPS_FIELD = "steps"


def recognizes(source: TranscriptSource) -> bool:
    """Return whether this is a trajectory with a schema version."""
    if len(source.first_values) > 1:
        return False
    document = source.document
    match document.value if document else None:
        case {"schema_version": str(version), "steps": list()}:
            return version.startswith("ATIF-v")
        case _:
            return False


def read(source: TranscriptSource) -> Iterator[ImportStep]:
    """Yield the trajectory as one session, step by step."""
    document = source.document
    value = document.value if document else None
    if (
        document is None
        or not isinstance(value, dict)
        or not isinstance(value.get(STEPS_FIELD), list)
    ):
        yield from report_no_session(
            document or SourceLine(1, source.size), "expected a trajectory"
        )
        return
    body: JsonDict = value
    steps = body[STEPS_FIELD]
    named = body.get("session_id") or body.get("trajectory_id")
    key = named if isinstance(named, str) else SessionKeys(source.stem).make_key(steps, document)
    yield SessionStart(key)
    conversation = MessageReader(ATIF_DIALECT, FORMAT_NAME, document, is_on_a_line=False)
    yield from read_body_steps(conversation, body, [(STEPS_FIELD, steps)])
    yield EntryEnd("imported", 0)
    yield from read_messages(conversation, steps, 0)


def read_step_parts(step: JsonDict, line: SourceLine, number: int) -> Iterator[MessagePart]:  # noqa: ARG001 - as others
    match require_field(step, "source", str):
        case "system":
            yield from _read_content(step, "message", Kind.DEVELOPER)
        case "user":
            yield from _read_content(step, "message", Kind.USER)
        case "agent":
            if thought := get_field(step, "reasoning_content", str):
                yield ReadBlock(
                    Block.thinking(thought), (Placeholder(("reasoning_content",), "text"),)
                )
            yield from _read_content(step, "message", Kind.ASSISTANT)
            for index, item in enumerate(get_field(step, "tool_calls", list) or []):
                yield _read_call(item, index, line)
        case unknown:
            yield UnknownPart(f"source/{unknown}", step)
            return
    observation = get_field(step, "observation", dict) or {}
    for index, item in enumerate(get_field(observation, "results", list) or []):
        at: JsonPath = ("observation", "results", index)
        yield from _read_results(item, at)


def _read_content(owner: JsonDict, field: str, kind: Kind) -> Iterator[MessagePart]:
    for at, item in read_texts(owner, field):
        try:
            yield _read_part(at, item, kind)
        except MalformedError as error:
            yield MalformedPart(f"{field}: {error}", item)


def _read_part(at: JsonPath, item: Any, kind: Kind) -> MessagePart:
    match read_item_type(item):
        case "text":
            words = require_field(item, "text", str)
            of = classify_user_text({}, words) if kind is Kind.USER else kind
            return ReadBlock(Block(kind=of, text=words), (Placeholder(text_path(at), "text"),))
        case "image":
            return ReadBlock(Block(kind=Kind.IMAGE, media=_read_image(item)), ())
        case unknown:
            return UnknownPart(f"content/{unknown}", item)


def _read_image(item: JsonDict) -> Media:
    source = require_field(item, "source", dict)
    mime = get_field(source, "media_type", str) or "image/*"
    return Media(type="image", mime=mime, url=require_field(source, "path", str))


def _read_call(item: Any, index: int, line: SourceLine) -> MessagePart:
    try:
        if not isinstance(item, dict) or not require_field(item, "tool_call_id", str):
            raise MalformedError("expected an object with an id")  # noqa: TRY301 - as take does
        call = ToolCall(
            tool_call_id=item["tool_call_id"],
            name=require_field(item, "function_name", str),
            arguments=line.to_json(require_field(item, "arguments", dict)),
        )
    except MalformedError as error:
        return MalformedPart(f"tool_calls[{index}]: {error}", item)
    return ReadBlock(call, (Placeholder(("tool_calls", index, "arguments"), "json"),))


def _read_results(item: Any, at: JsonPath) -> Iterator[MessagePart]:
    """Yield results; one that answers no call is a message of the program."""
    try:
        if not isinstance(item, dict):
            raise MalformedError("expected an object")  # noqa: TRY301 - as take does
        id = get_field(item, "source_call_id", str)
        found = [(_read_answer(place, part), place) for place, part in read_texts(item, "content")]
    except MalformedError as error:
        yield MalformedPart(f"observation.results[{at[-1]}]: {error}", item)
        return
    parts = tuple(part for part, _ in found)
    holes = [
        Placeholder((*at, *text_path(place)), "text", index)
        for index, (part, place) in enumerate(found)
        if isinstance(part, Text)
    ]
    is_plain = isinstance(item.get("content"), str)
    if is_plain:
        holes = [Placeholder(hole.path, "text") for hole in holes]
    if id:
        content: Any = (item["content"] if is_plain else parts) or ""
        yield ReadBlock(ToolResult(tool_call_id=id, content=content), tuple(holes))
    elif is_plain and item["content"]:
        yield ReadBlock(Block.developer(item["content"], name="observation"), tuple(holes))


def _read_answer(at: JsonPath, item: Any) -> ResultPart:
    match read_item_type(item):
        case "text":
            return Text(text=require_field(item, "text", str))
        case "image":
            return _read_image(item)
        case unknown:
            raise MalformedError(f"content{list(at[1:])}: unknown type {unknown}")


def _parse_call_fields(raw: str) -> dict[str, Any] | None:
    """Parse a step's metrics: the tokens of the prompt, and the cached ones among them."""
    match json.loads(raw):
        case {"source": "agent", "metrics": {"prompt_tokens": int(sent)} as metrics, **step}:
            cached = metrics.get("cached_tokens")
            cached = cached if isinstance(cached, int) else 0
            said, cost = metrics.get("completion_tokens"), metrics.get("cost_usd")
            model, time = step.get("model_name"), step.get("timestamp")
            return {
                "call_id": str(step.get("step_id")),
                "model": model if isinstance(model, str) else None,
                "usage": {
                    "input": max(0, sent - cached),
                    "cache_read": cached,
                    "output": said if isinstance(said, int) else None,
                },
                "source_time": time if isinstance(time, str) else None,
                "cost_usd": cost if isinstance(cost, int | float) else None,
            }
        case _:
            return None


_REQUEST_FIELDS = RequestFields(None, frozenset(), ("agent", "tool_definitions"))
ATIF_DIALECT = Dialect(
    FORMAT_NAME,
    (STEPS_FIELD,),
    read_step_parts,
    _REQUEST_FIELDS,
    read_call_fields=_parse_call_fields,
)
