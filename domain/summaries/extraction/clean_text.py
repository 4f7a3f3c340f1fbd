"""How a piece of a log is worded in a summary: one clean line, shortened, with its handles."""

import re
from functools import lru_cache

from ...ranges import Ranges, Run

ELLIPSIS = "…"

LINE_CACHE_SIZE = 8_192
"""Lines of which it is remembered how they read: summaries carry most of theirs on and on."""

_PRINTABLE = re.compile(r"[ -~\s]*", re.ASCII)
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -~])")
# Control codes that are no white space, and invisible marks that turn or hide what is read.
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


def make_printable(text: str) -> str:
    """A text without terminal codes, invisible marks and lone surrogates; white space stays."""
    if text.isascii() and (text.isprintable() or _PRINTABLE.fullmatch(text)):
        return text
    return _SURROGATE.sub("\ufffd", _INVISIBLE.sub("", _ESCAPE.sub("", text)))


def fold_lines(text: str) -> str:
    """A printable text as one line."""
    if " " not in text and text.isascii() and text.isprintable():
        return text  # a word, as most of what is listed
    return " ".join(make_printable(text).split())


def tidy_line(text: str) -> str:
    """A text as one line without encoded data, which says nothing to a reader."""
    words = make_printable(text).split()
    line = " ".join(words)
    if len(line) < _BLOB_LENGTH or max(map(len, words)) < _BLOB_LENGTH:
        return line
    return _BLOB.sub(ELLIPSIS, line)


def shorten_line(text: str, room: int) -> str:
    """The beginning of a line, cut between words where that costs little."""
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
    """The beginning and the end of a line: who pastes a log says what for before or after it."""
    if len(text) <= room or room < 40:
        return shorten_line(text, room)
    head = shorten_line(text, room * 2 // 3)
    tail = text[-(room - len(head) - 1) :]
    space = tail.find(" ")
    return f"{head} {tail[space + 1 :] if 0 <= space < len(tail) // 3 else tail[1:]}"


def mark_code(text: str) -> str:
    """A name, path or command, marked as such."""
    return f"`{text.replace('`', chr(39))}`"


def add_handles(text: str, handles: Ranges) -> str:
    """A line and where it comes from: `edited a.py (#12, #40-41)`; of many places the newest."""
    return text + _format_runs(handles.runs[-_MAX_RUNS:]) if handles else text


@lru_cache(maxsize=LINE_CACHE_SIZE)
def _format_runs(runs: tuple[Run, ...]) -> str:
    return f" ({', '.join(f'#{a}' if a == b else f'#{a}-{b}' for a, b in runs)})"


def parse_cited_handles(handles: Ranges) -> Ranges:
    """Those of the handles that a line names."""
    return Ranges(list_cited_runs(handles))


def list_cited_runs(handles: Ranges) -> tuple[Run, ...]:
    """The same as runs."""
    return handles.runs[-_MAX_RUNS:]


@lru_cache(maxsize=LINE_CACHE_SIZE)
def split_handles(line: str) -> tuple[str, Ranges]:
    """A line parted from the handles that it ends with."""
    found = _HANDLES.search(line) if line.endswith(")") else None
    if found is None:
        return line, Ranges()
    runs = [(int(a), int(b or a)) for a, b in _ONE_HANDLE.findall(found[1])]
    if any(not _is_run(run) for run in runs):
        return line, Ranges()
    return line[: found.start()], Ranges(runs)


def _is_run(run: Run) -> bool:
    return 1 <= run[0] <= run[1]
