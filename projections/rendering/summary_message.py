"""How a summary is said: as a text that passes for nobody's own words, and is known again."""

import re
from dataclasses import dataclass

from ...domain.ranges import Ranges
from ..history_view import HistoryView
from . import sendable

LEAD = (
    "[A summary of what came before, not the user's own words. "
    "What it covers is kept word for word: recall it by handle, as #12 or #12-20.]"
)


@dataclass(frozen=True, slots=True)
class SummaryMessage:
    """A summary as it was read back from a text."""

    covers: Ranges
    text: str


def said(view: HistoryView) -> str:
    """The text that is sent in the place of what left the view."""
    if view.summary is None:
        return ""
    hidden = view.boundary.hidden if view.boundary else Ranges()
    return wrapped(view.summary.text, view.summary.covers, hidden)


def wrapped(text: str, covers: Ranges, hidden: Ranges | None = None) -> str:
    """A summary's text within its mark; nothing in it can end the mark early.

    The mark names all that left: what the text stands for, and what was hidden without a word.
    """
    inner = _CLOSING.sub(r"<\\\1\2", sendable.text(text))
    left = f'covers="{covers}"' + (f' hidden="{hidden}"' if hidden else "")
    return f"{LEAD}\n<conversation-summary {left}>\n{inner}\n</conversation-summary>"


def recognised(text: str) -> SummaryMessage | None:
    """The summary that `text` says, so that an export is not imported as a user's words."""
    match = _WRAPPED.fullmatch(text.strip())
    if match is None:
        return None
    runs = ((int(first), int(last or first)) for first, last in _RUN.findall(match["covers"]))
    return SummaryMessage(Ranges(runs), _ESCAPED.sub(r"<\1\2", match["inner"]))


_CLOSING = re.compile(r"<(\\*)(/conversation-summary)", re.IGNORECASE)
_ESCAPED = re.compile(r"<\\(\\*)(/conversation-summary)", re.IGNORECASE)
_RUN = re.compile(r"#(\d+)(?:-(\d+))?")
_WRAPPED = re.compile(
    re.escape(LEAD)
    + r'\n<conversation-summary covers="(?P<covers>[#\d\s-]*)"(?: hidden="[#\d\s-]*")?>'
    + r"\n(?P<inner>.*)\n</conversation-summary>",
    re.DOTALL,
)
