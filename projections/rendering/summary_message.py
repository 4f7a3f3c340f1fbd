"""Renders a summary as a text that cannot be taken for the user's words, and parses it again."""

import re
from dataclasses import dataclass
from typing import Any

from ...domain.ranges import Ranges
from ..rendering import sendable
from ..view_content import ViewContent
from .sendable import JsonObject

SUMMARY_PREFIX = (
    "[A summary of what came before, not the user's own words. "
    "What it covers is kept word for word: recall it by handle, as #12 or #12-20.]"
)


@dataclass(frozen=True, slots=True)
class SummaryMessage:
    """A summary as read back from a text."""

    covers: Ranges
    text: str


def render_summary(view: ViewContent) -> str:
    """Return the text that is sent in place of what left the view."""
    if view.summary is None:
        return ""
    hidden = view.boundary.hidden if view.boundary else Ranges()
    return wrap_summary(view.summary.text, view.summary.covers, hidden)


def wrap_summary(text: str, covers: Ranges, hidden: Ranges | None = None) -> str:
    """Return a summary's text inside its mark, which nothing in the text can end early.

    The mark names everything that left: the positions covered by the text, and the hidden ones.
    """
    inner = _CLOSING.sub(r"<\\\1\2", sendable.replace_half_characters(text))
    left = f'covers="{covers}"' + (f' hidden="{hidden}"' if hidden else "")
    return f"{SUMMARY_PREFIX}\n<conversation-summary {left}>\n{inner}\n</conversation-summary>"


def parse_summary_message(text: str) -> SummaryMessage | None:
    """Return the summary in `text`, if it has the form of one.

    The form proves nothing, because anyone may paste such a text. The caller must know from the
    log, or from the structure around the text, that it is a summary.
    """
    match = _WRAPPED.fullmatch(text.strip())
    if match is None:
        return None
    runs = ((int(first), int(last or first)) for first, last in _RUN.findall(match["covers"]))
    return SummaryMessage(Ranges(runs), _ESCAPED.sub(r"<\1\2", match["inner"]))


def escape_foreign_summaries(body: JsonObject, view: ViewContent) -> JsonObject:
    """Escape the opening of a summary in all texts of a request except the view's own summary.

    Tool calls and signed thinking stay as the model made them. Changes the body in place.
    """
    spared = [render_summary(view)] if view.summary else []
    for name in ("messages", "input", "system", "instructions"):
        if name in body:
            body[name] = _escape_in(body[name], spared)
    return body


def escape_summary_marks(text: str) -> str:
    return _OPENING.sub(r"\1\\\2\3", text)


def _escape_in(value: Any, spared: list[str]) -> Any:
    match value:
        case str():
            if spared and value == spared[0]:
                return spared.pop()  # the first is the summary; a repetition was pasted
            return escape_summary_marks(value)
        case list():
            return [_escape_in(part, spared) for part in value]
        case {"type": "thinking" | "redacted_thinking" | "tool_use" | "reasoning" | "base64"}:
            return value
        case dict():
            for name in _TEXT_FIELDS & value.keys():
                value[name] = _escape_in(value[name], spared)
            return value
        case _:
            return value


_TEXT_FIELDS = frozenset({"content", "text", "output", "source", "data"})
"""The fields of requests that hold text, directly or nested."""
_OPENING = re.compile(
    r"([<\[])(\\*)(conversation-summary|A summary of what came before)", re.IGNORECASE
)
_CLOSING = re.compile(r"<(\\*)(/conversation-summary)", re.IGNORECASE)
_ESCAPED = re.compile(r"<\\(\\*)(/conversation-summary)", re.IGNORECASE)
_RUN = re.compile(r"#(\d{1,15})(?:-(\d{1,15}))?")
_WRAPPED = re.compile(
    re.escape(SUMMARY_PREFIX)
    + r'\n<conversation-summary covers="(?P<covers>[#\d\s-]*)"(?: hidden="[#\d\s-]*")?>'
    + r"\n(?P<inner>.*)\n</conversation-summary>",
    re.DOTALL,
)
