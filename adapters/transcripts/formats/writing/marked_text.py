"""What has no role of its own in a format, as a text of which it is known again what it is."""

from .....domain.blocks import AnyBlock, Kind
from .....domain.ranges import Ranges
from .....projections.rendering import summary_message
from ..summary_mark import is_imported_summary

_REMINDER = "<system-reminder>"


def make_marked_text(block: AnyBlock) -> str:
    """The text of a block; that of a summary with its mark, so that it is known again.

    A summary is a block where an import began with it: what it covers lies in another file.
    """
    if is_imported_summary(block) and not summary_message.parse_summary_message(block.text):
        return summary_message.wrap_summary(block.text, Ranges())
    return block.text


def make_user_text(block: AnyBlock) -> str:
    """The same for a format that knows no developer: it has the mark of a reminder, once."""
    text = make_marked_text(block)
    is_marked = text.lstrip().startswith(_REMINDER) or is_imported_summary(block)
    if block.kind is not Kind.DEVELOPER or is_marked:
        return text
    return f"{_REMINDER}\n{text}\n</system-reminder>"
