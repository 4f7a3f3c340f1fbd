"""Reads earlier summaries back, by any writer, so that the next one carries them on."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..ranges import Ranges
from .clean_text import (
    ELLIPSIS,
    defuse_tool_markup,
    find_quote,
    make_printable,
    shorten_line,
    split_handles,
    tidy_line,
)
from .layout import FAILED_MARK, SECTION_LAYOUT, SOURCE_END, SummaryLine, SummarySection

EARLIER_HEADING = "Earlier summary"
"""The heading of another writer's summary, which stays as written."""
_MAX_LINES = 400
_NOT_MARKDOWN = 7
"""The level of a heading that has no Markdown level."""

_FRAME = re.compile(
    r"<(read-files|modified-files)>.*?</\1>\n?|</?(?:summary|analysis)>\n?", re.DOTALL
)
_NOT_SUMMARY_TEXT = re.compile(
    r"<(read-files|modified-files)>.*?</\1>|^```.*?^```|</?summary>|</?analysis>",
    re.DOTALL | re.MULTILINE,
)
_LABEL = re.compile(r"[A-Z][A-Z0-9_]{3,30}:(?=\s|$)")
_QUOTE_MARK = re.compile(r"^(\s*)>[>\s]*")
_RULE = re.compile(r"[-*_=\s]{3,}")
_BULLET = re.compile(r"(?:(?:[-*+•>]|\d{1,3}[.)])\s+)+")
_HEADING = re.compile(
    r"#{1,6}\s+(.+)|\*\*([^*]{3,60})\*\*:?|\d{1,2}\.\s+(?:\*\*)?([^:*]{3,60}):(?:\*\*)?"
)
_NAMES = {
    section: re.compile(rf"\b(?:{words})", re.IGNORECASE)
    for section, words in {
        SummarySection.TURN: "current turn|turn context|task context|split turn",
        SummarySection.GOAL: "goal|objective|(?:primary|original|earlier) request|intent",
        SummarySection.SEEN: "code & output",
        SummarySection.CONSTRAINTS: "constraint|preference|requirement|user message|rule",
        SummarySection.IN_PROGRESS: "in progress|current work|current state|ongoing",
        SummarySection.NEXT: "next|pending|to-?do|remaining|not started|plan",
        SummarySection.BLOCKED: "block|error|problem|issue|failure",
        SummarySection.DECISIONS: "decision|rationale",
        SummarySection.DONE: "done|progress|completed|accomplish|changes",
    }.items()
}


def read_earlier_lines(
    sections: Mapping[str, str], text: str | None, covers: Ranges
) -> Iterator[SummaryLine]:
    """Yield the lines of an earlier summary, by any writer, with the handles that are still valid.

    Words count as the user's only if the earlier summary names their block.
    """
    if sections:
        text = "\n".join(f"## {heading}\n{body}" for heading, body in sections.items())
    section, above, source = SummarySection.CONTEXT, Ranges(), ""
    raws = _NOT_SUMMARY_TEXT.sub("", text or "").split("\n")[:_MAX_LINES]
    for raw, below in zip(raws, [*raws[1:], ""], strict=True):
        line = raw.strip()
        if not line or _RULE.fullmatch(line):
            continue
        if heading := _HEADING.fullmatch(line):
            section = _find_section(next(filter(None, heading.groups())))
            continue
        bullet = _BULLET.match(line)
        line = line[bullet.end() :] if bullet else line
        words, handles = split_handles(line)
        is_nested = raw.startswith("  - ")
        if not is_nested:
            above, source = handles, ""
        elif not handles:
            handles = above  # they stand above the nested lines
        if not is_nested and below.startswith("  - ") and handles and words.endswith(SOURCE_END):
            source = words.removesuffix(SOURCE_END)
            continue
        # Invalid handles count as text.
        if handles - covers:
            words, handles = line, Ranges()
        one = _make_line(section, words, handles)
        if one.text.strip(f"`{ELLIPSIS} "):
            yield replace(one, source=source if is_nested else "")


def _find_section(heading: str) -> SummarySection:
    return next((s for s, words in _NAMES.items() if words.search(heading)), SummarySection.CONTEXT)


def _make_line(section: SummarySection, text: str, handles: Ranges) -> SummaryLine:
    words = find_quote(text)
    is_quote = words is not None and bool(handles)
    if section is SummarySection.TURN:
        # Whether or not the turn goes on, this is what it had done.
        trouble = SummarySection.BLOCKED if FAILED_MARK in text else SummarySection.DONE
        section = SummarySection.GOAL if is_quote else trouble
    text = tidy_line(words if words is not None and is_quote else text)
    return SummaryLine(section, text, handles, weight=0.4, is_quote=is_quote)


def split_foreign_summary(sections: Mapping[str, str], text: str | None) -> list[str]:
    """Return the parts of a summary in another writer's layout, each with its heading.

    Lines stay as written, except that none can pass for a user's words or a tool call.
    """
    if EARLIER_HEADING in sections or not SECTION_LAYOUT.keys().isdisjoint(sections):
        text = "\n\n".join(
            body if heading == EARLIER_HEADING else f"### {heading}\n{body}"
            for heading, body in sections.items()
            if heading not in SECTION_LAYOUT
        )
    lines = [_defuse_quotes(line.rstrip()) for line in _FRAME.sub("", text or "").split("\n")]
    if not any(lines):
        return []
    levels = _find_heading_levels(lines)
    deeper = "#" * max(0, 3 - min((level for level in levels if level), default=3))
    # A title above all headings does not begin a part.
    heads = sorted({level for level in levels if level}, key=lambda n: (levels.count(n) < 2, n))
    parts: list[list[str]] = [[]]
    for line, level in zip(lines, levels, strict=True):
        if heads and level == heads[0] and any(parts[-1]):
            parts.append([])
        parts[-1].append(deeper + line if 0 < level < _NOT_MARKDOWN else line)
    return ["\n".join(part).strip("\n") for part in parts]


def _find_heading_levels(lines: Iterable[str]) -> list[int]:
    """Return the heading level of each line; 0 for other lines."""
    levels: list[int] = []
    is_code = False
    for line in lines:
        if line.lstrip().startswith("```"):
            is_code = not is_code
        if is_code or line[:1].isspace() or not (_HEADING.fullmatch(line) or _LABEL.match(line)):
            levels.append(0)
        else:
            levels.append(len(line) - len(line.lstrip("#")) or _NOT_MARKDOWN)
    return levels


def _defuse_quotes(line: str) -> str:
    """Return a line that reads neither as the user's words nor as a tool call."""
    text = _QUOTE_MARK.sub(r"\1", defuse_tool_markup(make_printable(line)))
    if find_quote(text) is None:
        return text
    mark = _BULLET.match(text.lstrip())
    begins = len(text) - len(text.lstrip()) + (mark.end() if mark else 0)
    return f"{text[:begins]}Log: {text[begins:]}"


def pick_newest_parts(parts: Sequence[str], room: int) -> str:
    """Return the parts that fit, in order, dropping the oldest first, then lines of the newest."""
    kept = list(parts)
    while len(kept) > 1 and len("\n\n".join(kept)) > room:
        del kept[0]
    text = "\n\n".join(kept)
    if len(text) <= room:
        return text
    heading, *lines = text.split("\n")
    while lines and len("\n".join([heading, *lines])) > room:
        del lines[0]
    return "\n".join([heading, *lines]) if lines else shorten_line(heading, room)
