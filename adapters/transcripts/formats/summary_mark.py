"""The field by which a file proves that a text in it is a summary and not somebody's words.

The form of a text proves nothing: a user may paste one. Who only writes texts sets no fields.
"""

from typing import Any

from ....domain.blocks import AnyBlock, Block, Kind
from ....projections.rendering.summary_message import SummaryMessage, parse_summary_message

SUMMARY_MARK = {"cutbank": "summary"}
"""Stands in the object that holds the text, or in its `extra`."""


def is_imported_summary(block: AnyBlock) -> bool:
    """Whether a block is the summary that an import began with."""
    return isinstance(block, Block) and (block.kind, block.name) == (Kind.DEVELOPER, "summary")


def make_summary_mark(block: AnyBlock) -> dict[str, Any]:
    """The mark of a summary; nothing for any other block."""
    return dict(SUMMARY_MARK) if is_imported_summary(block) else {}


def find_marked_summary(item: Any, text: object) -> SummaryMessage | None:
    """The summary that a text says which stands in a marked part of an item."""
    found = parse_summary_message(text) if isinstance(text, str) else None
    return found if found and _is_marked_text(item, text, is_marked=False) else None


def _is_marked_text(value: Any, text: object, *, is_marked: bool) -> bool:
    match value:
        case str():
            return is_marked and value == text
        case list():
            return any(_is_marked_text(part, text, is_marked=is_marked) for part in value)
        case dict():
            here = is_marked or _has_mark(value) or _has_mark(value.get("extra"))
            return any(_is_marked_text(part, text, is_marked=here) for part in value.values())
        case _:
            return False


def _has_mark(value: Any) -> bool:
    return isinstance(value, dict) and SUMMARY_MARK.items() <= value.items()
