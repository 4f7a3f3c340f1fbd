"""Reads the Agent Trajectory Interchange Format: one JSON object, and steps in it."""

import json
from collections.abc import Iterator
from typing import Any

from .....domain.blocks import Block, Kind, Media, Part, Text, ToolCall, ToolResult
from ..claude_code.entries import kind_of_user_text
from ..content.holes import At, Hole
from ..json_lines import Line
from ..messages.conversation import Asking, Conversation, Dialect
from ..messages.pieces import Made, Piece, Unheard, Wrong, at_text, texts, type_of
from ..messages.reader import Keys, body_steps, nothing, told
from ..reading.fields import Item, MalformedError, take, take_optional
from ..source import Source
from ..steps import Begin, EntryRead, Step

NAME = "atif"
STEPS = "steps"


def recognises(source: Source) -> bool:
    """Whether this is a trajectory that says its version."""
    if len(source.first) > 1:
        return False
    document = source.document
    match document.value if document else None:
        case {"schema_version": str(version), "steps": list()}:
            return version.startswith("ATIF-v")
        case _:
            return False


def read(source: Source) -> Iterator[Step]:
    """The trajectory as one session, step by step."""
    document = source.document
    value = document.value if document else None
    if document is None or not isinstance(value, dict) or not isinstance(value.get(STEPS), list):
        yield from nothing(document or Line(1, source.size), "expected a trajectory")
        return
    body: Item = value
    steps = body[STEPS]
    named = body.get("session_id") or body.get("trajectory_id")
    key = named if isinstance(named, str) else Keys(source.stem).of(steps, document)
    yield Begin(key)
    conversation = Conversation(DIALECT, NAME, document, is_on_a_line=False)
    yield from body_steps(conversation, body, [(STEPS, steps)])
    yield EntryRead("imported", 0)
    yield from told(conversation, steps, 0)


def pieces(step: Item, line: Line, number: int) -> Iterator[Piece]:  # noqa: ARG001 - as others
    """What a step holds, in the order in which it was said."""
    match take(step, "source", str):
        case "system":
            yield from _content(step, "message", Kind.DEVELOPER)
        case "user":
            yield from _content(step, "message", Kind.USER)
        case "agent":
            if thought := take_optional(step, "reasoning_content", str):
                yield Made(Block.thinking(thought), (Hole(("reasoning_content",), "text"),))
            yield from _content(step, "message", Kind.ASSISTANT)
            for index, item in enumerate(take_optional(step, "tool_calls", list) or []):
                yield _call(item, index, line)
        case unheard:
            yield Unheard(f"source/{unheard}", step)
            return
    observation = take_optional(step, "observation", dict) or {}
    for index, item in enumerate(take_optional(observation, "results", list) or []):
        at: At = ("observation", "results", index)
        yield from _result(item, at)


def _content(owner: Item, field: str, kind: Kind) -> Iterator[Piece]:
    for at, item in texts(owner, field):
        try:
            yield _part(at, item, kind)
        except MalformedError as error:
            yield Wrong(f"{field}: {error}", item)


def _part(at: At, item: Any, kind: Kind) -> Piece:
    match type_of(item):
        case "text":
            words = take(item, "text", str)
            of = kind_of_user_text({}, words) if kind is Kind.USER else kind
            return Made(Block(kind=of, text=words), (Hole(at_text(at), "text"),))
        case "image":
            return Made(Block(kind=Kind.IMAGE, media=_image(item)), ())
        case unheard:
            return Unheard(f"content/{unheard}", item)


def _image(item: Item) -> Media:
    source = take(item, "source", dict)
    mime = take_optional(source, "media_type", str) or "image/*"
    return Media(type="image", mime=mime, url=take(source, "path", str))


def _call(item: Any, index: int, line: Line) -> Piece:
    try:
        if not isinstance(item, dict) or not take(item, "tool_call_id", str):
            raise MalformedError("expected an object with an id")  # noqa: TRY301 - as take does
        call = ToolCall(
            tool_call_id=item["tool_call_id"],
            name=take(item, "function_name", str),
            arguments=line.json(take(item, "arguments", dict)),
        )
    except MalformedError as error:
        return Wrong(f"tool_calls[{index}]: {error}", item)
    return Made(call, (Hole(("tool_calls", index, "arguments"), "json"),))


def _result(item: Any, at: At) -> Iterator[Piece]:
    """What answers a call; what answers none is told by the program."""
    try:
        if not isinstance(item, dict):
            raise MalformedError("expected an object")  # noqa: TRY301 - as take does
        id = take_optional(item, "source_call_id", str)
        found = [(_answer(place, part), place) for place, part in texts(item, "content")]
    except MalformedError as error:
        yield Wrong(f"observation.results[{at[-1]}]: {error}", item)
        return
    parts = tuple(part for part, _ in found)
    holes = [
        Hole((*at, *at_text(place)), "text", index)
        for index, (part, place) in enumerate(found)
        if isinstance(part, Text)
    ]
    is_plain = isinstance(item.get("content"), str)
    if is_plain:
        holes = [Hole(hole.at, "text") for hole in holes]
    if id:
        content: Any = (item["content"] if is_plain else parts) or ""
        yield Made(ToolResult(tool_call_id=id, content=content), tuple(holes))
    elif is_plain and item["content"]:
        yield Made(Block.developer(item["content"], name="observation"), tuple(holes))


def _answer(at: At, item: Any) -> Part:
    match type_of(item):
        case "text":
            return Text(text=take(item, "text", str))
        case "image":
            return _image(item)
        case unheard:
            raise MalformedError(f"content{list(at[1:])}: unknown type {unheard}")


def _call_fields(raw: str) -> dict[str, Any] | None:
    """What a step says of its call: all tokens of the prompt, and the cached ones among them."""
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


ASKING = Asking(None, frozenset(), ("agent", "tool_definitions"))
DIALECT = Dialect(NAME, (STEPS,), pieces, ASKING, call=_call_fields)
