"""Formats text from the log for a summary: one clean line, shortened, with its handles."""

import re

from ..ranges import Ranges, Run

ELLIPSIS = "…"

_PRINTABLE = re.compile(r"[ -~\s]*", re.ASCII)
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -~])")
# Control codes other than white space, and invisible marks that reorder or hide text.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLOB_LENGTH = 100
_BLOB = re.compile(rf"[A-Za-z0-9+/=_-]{{{_BLOB_LENGTH},}}")
_HANDLE = r"#(\d{1,15})(?:-(\d{1,15}))?"
_HANDLES = re.compile(rf" ?\(({_HANDLE}(?:, ?{_HANDLE})*)\)$")
_ONE_HANDLE = re.compile(_HANDLE)
_MAX_RUNS = 3
NUMBERING_PATTERN = re.compile(r"\s*(?:[\w./-]+:)?\d+(?:→|[:|\t-])\s*(?:\d+[:-])?")
"""The number that a tool writes before each line of a file."""


def make_printable(text: str) -> str:
    """Return a text without terminal codes, invisible marks and lone surrogates."""
    if text.isascii() and (text.isprintable() or _PRINTABLE.fullmatch(text)):
        return text
    return _SURROGATE.sub("\ufffd", _INVISIBLE.sub("", _ESCAPE.sub("", text)))


def fold_lines(text: str) -> str:
    if " " not in text and text.isascii() and text.isprintable():
        return text  # a single word, the usual case in lists
    return " ".join(make_printable(text).split())


def tidy_line(text: str) -> str:
    """Return a text as one line without encoded data, which a reader cannot use."""
    words = make_printable(text).split()
    line = " ".join(words)
    if len(line) < _BLOB_LENGTH or max(map(len, words)) < _BLOB_LENGTH:
        return line
    return _BLOB.sub(ELLIPSIS, line)


def shorten_line(text: str, room: int) -> str:
    """Return the beginning of a line, cut between words if that costs little."""
    if len(text) <= room:
        return text
    if room <= 0:
        return ""
    cut = text[: room - 1]
    space = cut.rfind(" ")
    if space > room * 0.6:
        cut = cut[:space]
    return cut.rstrip(" ,;:-(") + ELLIPSIS


def shorten_inside(text: str, room: int) -> str:
    """Return the beginning and the end of a line, since a request may follow a pasted log."""
    if len(text) <= room or room < 40:
        return shorten_line(text, room)
    head = shorten_line(text, room * 2 // 3)
    tail = text[-(room - len(head) - 1) :]
    space = tail.find(" ")
    return f"{head} {tail[space + 1 :] if 0 <= space < len(tail) // 3 else tail[1:]}"


def mark_code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`"


def add_handles(text: str, handles: Ranges) -> str:
    """Return a line with its newest sources: `edited a.py (#12, #40-41)`."""
    cited = [f"#{a}" if a == b else f"#{a}-{b}" for a, b in list_cited_runs(handles)]
    return f"{text} ({', '.join(cited)})" if cited else text


def list_cited_runs(handles: Ranges) -> tuple[Run, ...]:
    """Return the sources that `add_handles` names."""
    return handles.runs[-_MAX_RUNS:]


def split_handles(line: str) -> tuple[str, Ranges]:
    """Return a line and the handles at its end, separately."""
    found = _HANDLES.search(line) if line.endswith(")") else None
    if found is None:
        return line, Ranges()
    runs = [(int(a), int(b or a)) for a, b in _ONE_HANDLE.findall(found[1])]
    if not all(1 <= first <= last for first, last in runs):
        return line, Ranges()
    return line[: found.start()], Ranges(runs)


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
