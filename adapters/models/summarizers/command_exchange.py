"""Formats the JSON input of a summarizing program, and parses its output."""

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from pydantic import ValidationError

from ....domain.blocks import Block, Media, ToolCall, ToolResult
from ....domain.errors import SummarizerFailedError
from ....domain.item import Item
from ....domain.ranges import Ranges
from ....domain.session_events import Usage
from ....domain.summaries.summarizer import Draft, Material
from .reply_parsing import parse_reply

EXCHANGE_VERSION = 1
"""Raised when programs written for an older version would misread the input."""


def make_question(material: Material, items: Iterable[Item], previous: str | None) -> bytes:
    document = {
        "version": EXCHANGE_VERSION,
        "budget": material.budget,
        "instructions": material.instructions,
        "previous": previous,
        "covers": _to_runs(material.covers),
        "prefix": _to_runs(material.prefix),
        "digest": {
            "read_files": list(material.digest.read_files),
            "modified_files": list(material.digest.modified_files),
        },
        "blocks": [_block_to_json(item) for item in items],
    }
    return json.dumps(document).encode()


def parse_answer(output: bytes, material: Material) -> Draft:
    """Return the draft from a program's output: a JSON object with a `text`, or plain text."""
    said = output.decode("utf-8", "replace").strip()
    document = _parse_object(said)
    if document is None:
        return _make_draft(said, material, {})
    if not isinstance(document.get("text"), str):
        raise SummarizerFailedError("answered a JSON object without a 'text'")
    return _make_draft(document["text"], material, document)


def _make_draft(said: str, material: Material, document: Mapping[str, Any]) -> Draft:
    text = parse_reply(said, material.covers)
    return Draft(
        text=text.text,
        sections=text.sections,
        cites=text.cites | _parse_cites(document.get("cites")),
        model=_check_type("model", document.get("model"), str),
        usage=_parse_usage(document.get("usage")),
        cost_usd=_parse_cost(document.get("cost_usd")),
        was_truncated=bool(_check_type("was_truncated", document.get("was_truncated"), bool)),
    )


def _parse_object(said: str) -> dict[str, Any] | None:
    if not said.startswith("{"):
        return None
    try:
        document = json.loads(said)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _parse_cites(value: Any) -> Ranges:
    runs: list[tuple[int, int]] = []
    for entry in _check_type("cites", value, list) or []:
        run = entry if isinstance(entry, list) else [entry, entry]
        if len(run) != 2 or any(type(end) is not int for end in run) or not 1 <= run[0] <= run[1]:
            raise SummarizerFailedError(
                f"answered cites that hold {json.dumps(entry)[:40]}; it takes [3, [7, 9]]"
            )
        runs.append((run[0], run[1]))
    return Ranges(runs)


def _parse_usage(value: Any) -> Usage | None:
    if value is None:
        return None
    try:
        return Usage.model_validate(value)
    except ValidationError as error:
        names = ", ".join(Usage.model_fields)
        raise SummarizerFailedError(
            f"answered a usage that cannot be read; it takes whole numbers: {names}"
        ) from error


def _parse_cost(value: Any) -> float | None:
    cost = _check_type("cost_usd", value, float)
    if cost is not None and not (isfinite(cost) and cost >= 0):
        raise SummarizerFailedError(f"answered a cost_usd that cannot be: {cost}")
    return None if cost is None else float(cost)


def _check_type(name: str, value: Any, kind: type) -> Any:
    if value is None or type(value) is kind or (kind is float and type(value) is int):
        return value
    raise SummarizerFailedError(f"answered a {name} that is no {kind.__name__}")


def _block_to_json(item: Item) -> dict[str, Any]:
    block = item.block
    told: dict[str, Any] = {
        "position": item.position,
        "kind": str(item.kind),
        "turn": item.turn,
        "tokens": item.tokens,
        "text": block.text,
    }
    if isinstance(block, ToolCall):
        told |= {"tool": block.name, "tool_call_id": block.tool_call_id}
    elif isinstance(block, ToolResult):
        told |= {
            "call": item.call,
            "tool_call_id": block.tool_call_id,
            "is_error": block.is_error,
        }
    if isinstance(block, Block) and block.name:
        told["name"] = block.name
    if media := _find_media(block):
        told["media"] = [_describe_media(medium) for medium in media]
    return told


def _find_media(block: Block | ToolCall | ToolResult) -> tuple[Media, ...]:
    if isinstance(block, ToolResult):
        return block.media
    return (block.media,) if isinstance(block, Block) and block.media else ()


def _describe_media(media: Media) -> dict[str, Any]:
    """Describe an image or document; recalling the block gives its bytes."""
    return {"type": media.type, "mime": media.mime, "bytes": len(media.data), "url": media.url}


def _to_runs(ranges: Ranges) -> list[list[int]]:
    return [list(run) for run in ranges.runs]
