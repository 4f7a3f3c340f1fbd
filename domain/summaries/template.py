"""Finds what a policy's summary template adds to the common rules."""

from collections.abc import Callable

from ..blocks import ToolCall
from ..digest import TouchedPaths
from .summarizer import SummaryTemplate


def get_touch_rule(template: SummaryTemplate | None) -> Callable[[ToolCall], TouchedPaths] | None:
    """Return a template's own rule of what calls do to files; None if cutbank's rule applies."""
    return getattr(template, "find_touches", None)
