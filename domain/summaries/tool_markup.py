"""Knows the markup in which models call tools, and takes its force away where it is only quoted."""

import re

_MARKUP = re.compile(
    r"</?(?:antml:)?(?:tool_calls?|function_calls?|tool_use|tool_code|invoke|function=)\b[^<>\n]{0,80}>?"
    r"|<\|(?:tool|python_tag|channel\|>commentary to=)[^|\n]{0,40}(?:\|>)?"
    r"|\[TOOL_CALLS?\]",
    re.IGNORECASE,
)
_HARMLESS = str.maketrans("<[", "\u2039(")


def find_tool_markup(text: str) -> str | None:
    """The first markup of a tool call in a text."""
    found = _MARKUP.search(text)
    return None if found is None else found[0]


def defuse_tool_markup(text: str) -> str:
    """A text in which no tool is called."""
    if "<" not in text and "[" not in text:
        return text
    return _MARKUP.sub(lambda found: found[0].translate(_HARMLESS), text)
