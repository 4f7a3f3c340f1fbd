"""Formats text from the log for a summary: clean lines with handles, and quotes of the user."""

import re
from collections.abc import Iterable, Iterator

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
MAX_CITED = 3
"""The most ranges of sources that a line names."""
NUMBERING_PATTERN = re.compile(r"\s*(?:[\w./-]+:)?\d+(?:→|[:|\t-]|\.(?=\s))\s*(?:\d+[:-])?")
"""The number that a tool writes before each line of a file."""
DECORATION_PATTERN = re.compile(r"^[=*~-]{4,} | [=*~-]{4,}$")
"""The rule that a program draws around a line of its output."""


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
    # Whole words, since the rest of one would read as another fact.
    return " ".join(ELLIPSIS if _BLOB.search(word) else word for word in words)


def shorten_line(text: str, room: int) -> str:
    """Return the beginning of a line, cut between words: half a word would be another fact."""
    if len(text) <= room:
        return text
    if room <= 0:
        return ""
    cut = text[: room - 1]
    space = room - 1 if text[room - 1] == " " else cut.rfind(" ")
    if space >= 0 or cut.isascii():
        cut = cut[: max(space, 0)]
    return cut.rstrip(" ,;:-(") + ELLIPSIS


def shorten_inside(text: str, room: int) -> str:
    """Return the beginning and the end of a line, since a request may follow a pasted log."""
    if len(text) <= room or room < 40:
        return shorten_line(text, room)
    head = shorten_line(text, room * 2 // 3)
    tail = text[-(room - len(head)) :]
    space = tail.find(" ")
    is_one_word = space < 0 and tail.isascii()
    return head if is_one_word else f"{head} {tail[max(space, 0) + 1 :]}"


def mark_code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`"


def add_handles(text: str, handles: Ranges) -> str:
    """Return a line with its newest sources: `edited a.py (#12, #40-41)`."""
    cited = [f"#{a}" if a == b else f"#{a}-{b}" for a, b in list_cited_runs(handles)]
    return f"{text} ({', '.join(cited)})" if cited else text


def list_cited_runs(handles: Ranges) -> tuple[Run, ...]:
    """Return the sources that `add_handles` names."""
    return handles.runs[-MAX_CITED:]


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


# Quotes of the user: `- User: "..." (#7)`

# Words between the name and the colon still attribute it: `User, later: "..."`.
_ATTRIBUTED = re.compile(
    r"[-+•.\d\s*_`'\"“>(\[)]*(?:the\s+)?(?:user|human)\b[^:\"“”]{0,60}:[\s*_]*[\"“](.*)",
    re.IGNORECASE,
)
_QUOTED_LINE = re.compile(r">+\s?(.*)")
_MARKDOWN_HEADING = re.compile(r"#{1,6}\s+(.*)")
_USER_HEADING = re.compile(r"\b(?:goal|constraints?|preferences?|requests?)\b", re.IGNORECASE)
_OMISSION = re.compile(r"…|\.\.\.")
_PIECES = re.compile(r"\"([^\"]+)\"")
_STRAIGHT = str.maketrans("\u201c\u201d\u2018\u2019", "\"\"''")


def write_quote(words: str) -> str:
    """Return a user's words as a line of a summary."""
    return f'User: "{words}"'


def find_quote(line: str) -> str | None:
    """Return the words that a summary line attributes to the user, or None."""
    if '"' not in line and "“" not in line:
        return None  # as in most lines; a search would take longer
    found = _ATTRIBUTED.match(line.strip())
    if found is None:
        return None
    words = split_handles(found[1])[0].rstrip()
    return words[:-1] if words.endswith(('"', "”")) else words


def iter_quotes(text: str) -> Iterator[str]:
    """Yield all words that a summary attributes to the user.

    These are attributed quotes anywhere, and `> ` lines under the headings of goal and constraints.
    """
    is_users_own = False
    for line in map(str.strip, text.split("\n")):
        if line.startswith("#") and (heading := _MARKDOWN_HEADING.match(line)):
            is_users_own = bool(_USER_HEADING.search(heading[1]))
        elif (words := find_quote(line)) is not None:
            yield words
        elif is_users_own and (found := _QUOTED_LINE.match(line)):
            yield split_handles(found[1])[0]


def normalize_quotes(text: str) -> str:
    """Return a text as quotes are searched in it: one line, with straight quotation marks."""
    return fold_lines(text).translate(_STRAIGHT)


def list_comparable_texts(text: str) -> tuple[str, ...]:
    """Return the forms of a text to search for quotes: without terminal codes, and with them.

    A quote may begin or end inside a code, and then its characters are the user's too.
    """
    if "\x1b" not in text:
        return (normalize_quotes(text),)
    return normalize_quotes(text), normalize_quotes(text.replace("\x1b", ""))


def is_quote_in(quote: str, texts: Iterable[str]) -> bool:
    """Check whether the words are in one of the texts, in order, except for omissions.

    A line with several quotes may take them from several texts; the words between quotes are not
    the user's.

    Args:
        quote: The words attributed to the user.
        texts: The user's texts, as `list_comparable_texts` returns them.
    """
    known = tuple(texts)
    return any(_is_taken_from(form, known) for form in list_comparable_texts(quote))


def _is_taken_from(quote: str, texts: tuple[str, ...]) -> bool:
    pieces = _PIECES.findall(f'"{quote}"')
    return _is_quote_in_one(quote, texts) or (
        bool(pieces) and all(_is_quote_in_one(piece, texts) for piece in pieces)
    )


def _is_quote_in_one(quote: str, texts: tuple[str, ...]) -> bool:
    parts = [part.strip() for part in _OMISSION.split(quote)]
    return any(_has_in_order(parts, text) for text in texts)


def _has_in_order(parts: list[str], text: str) -> bool:
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True
