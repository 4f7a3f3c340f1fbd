"""How a summary is said: as a text that passes for nobody's own words, and is known again."""

import re
from dataclasses import dataclass

from ...domain.compaction_events import Summary
from ...domain.ranges import Ranges
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


def said(summary: Summary) -> str:
    """The text that is sent in the place of what the summary covers."""
    return wrapped(summary.text, summary.covers)


def wrapped(text: str, covers: Ranges) -> str:
    """A summary's text within its mark; nothing in it can end the mark early."""
    inner = _CLOSING.sub(r"<\\\1\2", sendable.text(text))
    return f'{LEAD}\n<conversation-summary covers="{covers}">\n{inner}\n</conversation-summary>'


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
    + r'\n<conversation-summary covers="(?P<covers>[#\d\s-]*)">\n(?P<inner>.*)\n'
    + r"</conversation-summary>",
    re.DOTALL,
)
