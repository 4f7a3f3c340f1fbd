"""Finds what a policy's form of summaries adds to the common rules."""

from collections.abc import Callable

from ..blocks import ToolCall
from ..digest import TouchedPaths
from .summarizer import SummaryTemplate


def get_touch_rule(template: SummaryTemplate | None) -> Callable[[ToolCall], TouchedPaths] | None:
    """A form's own rule of what calls do to files; None where cutbank's holds."""
    return getattr(template, "find_touches", None)
