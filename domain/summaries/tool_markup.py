"""Recognizes the markup of tool calls, and disarms it where it is only quoted."""

import re

_MARKUP = re.compile(
    r"</?(?:antml:)?(?:tool_calls?|function_calls?|tool_use|tool_code|invoke|function=)\b[^<>\n]{0,80}>?"
    r"|<\|(?:tool|python_tag|channel\|>commentary to=)[^|\n]{0,40}(?:\|>)?"
    r"|\[TOOL_CALLS?\]",
    re.IGNORECASE,
)
_HARMLESS = str.maketrans("<[", "\u2039(")


def find_tool_markup(text: str) -> str | None:
    """Return the first markup of a tool call in a text, or None."""
    found = _MARKUP.search(text)
    return None if found is None else found[0]


def defuse_tool_markup(text: str) -> str:
    if "<" not in text and "[" not in text:
        return text
    return _MARKUP.sub(lambda found: found[0].translate(_HARMLESS), text)
