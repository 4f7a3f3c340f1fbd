"""What a program that summarises is given as JSON, and what it may answer."""

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from pydantic import ValidationError

from ....domain.blocks import Block, Media, ToolCall, ToolResult
from ....domain.errors import SummariserFailedError
from ....domain.item import Item
from ....domain.ranges import Ranges
from ....domain.session_events import Usage
from ....domain.summaries.summariser import Draft, Material
from .cited_lines import written

VERSION = 1
"""Raised when a program written for an older one would misread what it is given."""


def question(material: Material, items: Iterable[Item], previous: str | None) -> bytes:
    """The material as one JSON document."""
    document = {
        "version": VERSION,
        "budget": material.budget,
        "instructions": material.instructions,
        "previous": previous,
        "covers": _runs(material.covers),
        "prefix": _runs(material.prefix),
        "digest": {
            "read_files": list(material.digest.read_files),
            "modified_files": list(material.digest.modified_files),
        },
        "blocks": [_block(item) for item in items],
    }
    return json.dumps(document).encode()


def answer(output: bytes, material: Material) -> Draft:
    """The draft that a program's output is: a JSON object with a `text`, or else plain text."""
    said = output.decode("utf-8", "replace").strip()
    document = _object(said)
    if document is None:
        return _draft(said, material, {})
    if not isinstance(document.get("text"), str):
        raise SummariserFailedError("answered a JSON object without a 'text'")
    return _draft(document["text"], material, document)


def _draft(said: str, material: Material, document: Mapping[str, Any]) -> Draft:
    text = written(said, material.covers)
    return Draft(
        text=text.text,
        sections=text.sections,
        cites=text.cites | _cites(document.get("cites")),
        model=_checked("model", document.get("model"), str),
        usage=_usage(document.get("usage")),
        cost_usd=_cost(document.get("cost_usd")),
        was_truncated=bool(_checked("was_truncated", document.get("was_truncated"), bool)),
    )


def _object(said: str) -> dict[str, Any] | None:
    if not said.startswith("{"):
        return None
    try:
        document = json.loads(said)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _cites(value: Any) -> Ranges:
    """Positions, or runs of them: `[3, [7, 9]]`."""
    runs: list[tuple[int, int]] = []
    for entry in _checked("cites", value, list) or []:
        run = entry if isinstance(entry, list) else [entry, entry]
        if len(run) != 2 or any(type(end) is not int for end in run) or not 1 <= run[0] <= run[1]:
            raise SummariserFailedError(
                f"answered cites that hold {json.dumps(entry)[:40]}; it takes [3, [7, 9]]"
            )
        runs.append((run[0], run[1]))
    return Ranges(runs)


def _usage(value: Any) -> Usage | None:
    if value is None:
        return None
    try:
        return Usage.model_validate(value)
    except ValidationError as error:
        names = ", ".join(Usage.model_fields)
        raise SummariserFailedError(
            f"answered a usage that cannot be read; it takes whole numbers: {names}"
        ) from error


def _cost(value: Any) -> float | None:
    cost = _checked("cost_usd", value, float)
    if cost is not None and not (isfinite(cost) and cost >= 0):
        raise SummariserFailedError(f"answered a cost_usd that cannot be: {cost}")
    return None if cost is None else float(cost)


def _checked(name: str, value: Any, kind: type) -> Any:
    """The value, if it is of that kind or missing."""
    if value is None or type(value) is kind or (kind is float and type(value) is int):
        return value
    raise SummariserFailedError(f"answered a {name} that is no {kind.__name__}")


def _block(item: Item) -> dict[str, Any]:
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
    if media := _media(block):
        told["media"] = [_described(medium) for medium in media]
    return told


def _media(block: Block | ToolCall | ToolResult) -> tuple[Media, ...]:
    if isinstance(block, ToolResult):
        return block.media
    return (block.media,) if isinstance(block, Block) and block.media else ()


def _described(media: Media) -> dict[str, Any]:
    """What an image or document is; its bytes can be had by recalling the block."""
    return {"type": media.type, "mime": media.mime, "bytes": len(media.data), "url": media.url}


def _runs(ranges: Ranges) -> list[list[int]]:
    return [list(run) for run in ranges.runs]
