"""Marks texts in a file as summaries, and recognizes the marks.

A user may paste any text, but cannot set fields.
"""

from typing import Any

from ....domain.blocks import AnyBlock, Block, BlockKind
from ....domain.ranges import Ranges
from ....projections.rendering import summary_message
from ....projections.rendering.summary_message import SummaryMessage, parse_summary_message
from .fields import JsonDict

SUMMARY_MARK = {"cutbank": "summary"}
"""The field in the object that holds the text, or in its `extra`."""


def is_imported_summary(block: AnyBlock) -> bool:
    """Return whether a block is the summary at the start of an import."""
    return isinstance(block, Block) and (block.kind, block.name) == (BlockKind.DEVELOPER, "summary")


def make_summary_mark(block: AnyBlock) -> dict[str, Any]:
    """Return the mark of a summary; empty for any other block."""
    return dict(SUMMARY_MARK) if is_imported_summary(block) else {}


def find_marked_summary(item: JsonDict, text: str) -> SummaryMessage | None:
    """Return the summary with this text, if the message, or the part of it with the text, is
    marked.
    """
    parts = item.get("content")
    owners = [item, item.get("extra"), *(parts if isinstance(parts, list) else ())]
    is_marked = any(_has_mark(one) and one.get("text", text) == text for one in owners)
    return parse_summary_message(text) if is_marked else None


def _has_mark(value: Any) -> bool:
    return isinstance(value, dict) and SUMMARY_MARK.items() <= value.items()


def make_marked_text(block: AnyBlock) -> str:
    """Return the text of a block; a summary has its mark.

    A block is a summary if an import began with it: what it covers is in another file.
    """
    if is_imported_summary(block) and not summary_message.parse_summary_message(block.text):
        return summary_message.wrap_summary(block.text, Ranges())
    return block.text
