"""Reads and writes blocks as JSON: `append --blocks` reads what `show` and `recall` write."""

import json
from typing import Any

from pydantic import ValidationError

from ....domain.blocks import AnyBlock, Block, Kind, ToolCall, ToolResult
from ....domain.errors import InvalidSettingError
from ....domain.record import find_unknown

_CLASSES: dict[str, type[ToolCall | ToolResult]] = {
    Kind.TOOL_CALL: ToolCall,
    Kind.TOOL_RESULT: ToolResult,
}


def block_to_json(block: AnyBlock) -> dict[str, Any]:
    fields = block.model_dump(mode="json", exclude_none=True)
    return {"kind": block.kind.value, **fields}


def parse_json(text: str, where: str) -> Any:
    """Parse a JSON text; error messages call it `where`."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidSettingError(f"{where} is not JSON: {error}") from None
    except RecursionError:
        raise InvalidSettingError(f"{where} is nested too deeply") from None


def parse_blocks(text: str, where: str) -> list[AnyBlock]:
    """Parse a JSON list of blocks; error messages call it `where`."""
    entries = parse_json(text, where)
    if not isinstance(entries, list) or not entries:
        raise InvalidSettingError(f"{where} must hold a JSON list of blocks, and at least one")
    return [
        _parse_block(entry, f"{where}: block {number}") for number, entry in enumerate(entries, 1)
    ]


def _parse_block(entry: Any, where: str) -> AnyBlock:
    if not isinstance(entry, dict):
        raise InvalidSettingError(f"{where} must be a JSON object")
    fields = dict(entry)
    kind = fields.get("kind")
    if kind in _CLASSES:
        del fields["kind"]
    try:
        block = _CLASSES.get(str(kind), Block).model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "it"
        raise InvalidSettingError(f"{where}: {name}: {first['msg']}") from None
    # A log may hold unknown fields; in a person's input they are a mistake.
    if unknown := find_unknown(block):
        raise InvalidSettingError(f"{where}: {unknown}")
    return block
