"""Marks texts in a file as summaries, and recognizes the marks.

A user may paste any text, but cannot set fields.
"""

from typing import Any

from ....domain.blocks import AnyBlock, Block, BlockKind
from ....domain.ranges import Ranges
from ....projections.rendering import summary_message
from ....projections.rendering.summary_message import SummaryMessage, parse_summary_message

SUMMARY_MARK = {"cutbank": "summary"}
"""The field in the object that holds the text, or in its `extra`."""


def is_imported_summary(block: AnyBlock) -> bool:
    """Return whether a block is the summary at the start of an import."""
    return isinstance(block, Block) and (block.kind, block.name) == (BlockKind.DEVELOPER, "summary")


def make_summary_mark(block: AnyBlock) -> dict[str, Any]:
    """Return the mark of a summary; empty for any other block."""
    return dict(SUMMARY_MARK) if is_imported_summary(block) else {}


def find_marked_summary(item: Any, text: object) -> SummaryMessage | None:
    """Return the summary with this text, if the item has the mark."""
    found = parse_summary_message(text) if isinstance(text, str) else None
    return found if found and _has_marked_text(item, text) else None


def _has_marked_text(item: Any, text: object) -> bool:
    """Look for the text in the item, in a loop, since a source may be nested to any depth."""
    waiting = [(item, False)]
    while waiting:
        value, is_marked = waiting.pop()
        match value:
            case str() if is_marked and value == text:
                return True
            case list():
                waiting += [(part, is_marked) for part in value]
            case dict():
                here = is_marked or _has_mark(value) or _has_mark(value.get("extra"))
                waiting += [(part, here) for part in value.values()]
            case _:
                pass
    return False


def _has_mark(value: Any) -> bool:
    return isinstance(value, dict) and SUMMARY_MARK.items() <= value.items()


def make_marked_text(block: AnyBlock) -> str:
    """Return the text of a block; a summary has its mark.

    A block is a summary if an import began with it: what it covers is in another file.
    """
    if is_imported_summary(block) and not summary_message.parse_summary_message(block.text):
        return summary_message.wrap_summary(block.text, Ranges())
    return block.text
