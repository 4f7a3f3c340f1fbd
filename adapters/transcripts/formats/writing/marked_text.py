"""Writes blocks that have no role in a format as marked text, which readers recognize."""

from .....domain.blocks import AnyBlock, Kind
from .....domain.ranges import Ranges
from .....projections.rendering import summary_message
from ..summary_mark import is_imported_summary

_REMINDER = "<system-reminder>"


def make_marked_text(block: AnyBlock) -> str:
    """Return the text of a block; a summary has its mark.

    A block is a summary if an import began with it: what it covers is in another file.
    """
    if is_imported_summary(block) and not summary_message.parse_summary_message(block.text):
        return summary_message.wrap_summary(block.text, Ranges())
    return block.text


def make_user_text(block: AnyBlock) -> str:
    """Return the text for a format without a developer role, marked once as a reminder."""
    text = make_marked_text(block)
    is_marked = text.lstrip().startswith(_REMINDER) or is_imported_summary(block)
    if block.kind is not Kind.DEVELOPER or is_marked:
        return text
    return f"{_REMINDER}\n{text}\n</system-reminder>"
