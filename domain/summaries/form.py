"""Finds what a policy's form of summaries adds to the common rules."""

from collections.abc import Callable

from ..blocks import ToolCall
from ..digest import Touch
from .summariser import SummaryForm


def touches_of(form: SummaryForm | None) -> Callable[[ToolCall], Touch] | None:
    """A form's own rule of what calls do to files; None where cutbank's holds."""
    return getattr(form, "touches", None)
