"""Defines the sections, lines and lists of files of a summary, and lays them out."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter

from ..blocks import BlockKind, ToolCall
from ..cached_property import cached_property
from ..compaction_events import Digest
from ..digest import find_touched_files
from ..item import WindowItem
from ..ranges import Ranges
from .clean_text import (
    add_handles,
    defuse_tool_markup,
    find_quote,
    fold_lines,
    shorten_inside,
    shorten_line,
    split_handles,
    write_quote,
)


class SummarySection(StrEnum):
    """The subject of a summary line."""

    GOAL = "Goal"
    EARLIER_REQUESTS = "Earlier Requests"
    CONSTRAINTS = "Constraints & Preferences"
    DONE = "Done"
    IN_PROGRESS = "In Progress"
    BLOCKED = "Blocked"
    DECISIONS = "Key Decisions"
    NEXT = "Next Steps"
    CONTEXT = "Critical Context"
    SEEN = "Code & Output"
    TURN = "Current turn so far"


PROGRESS_HEADING = "Progress"
PROGRESS_SECTIONS = (SummarySection.DONE, SummarySection.IN_PROGRESS, SummarySection.BLOCKED)
SECTION_LAYOUT: Mapping[str, tuple[SummarySection, ...]] = {
    SummarySection.GOAL: (SummarySection.GOAL, SummarySection.EARLIER_REQUESTS),
    SummarySection.CONSTRAINTS: (SummarySection.CONSTRAINTS,),
    PROGRESS_HEADING: PROGRESS_SECTIONS,
    SummarySection.DECISIONS: (SummarySection.DECISIONS,),
    SummarySection.NEXT: (SummarySection.NEXT,),
    SummarySection.CONTEXT: (SummarySection.CONTEXT, SummarySection.SEEN),
    SummarySection.TURN: (SummarySection.TURN,),
}
"""The sections under each heading; one that is not named like it has a heading of its own below."""
_HEADING_OF = {section: heading for heading, under in SECTION_LAYOUT.items() for section in under}
FAILED_MARK = " failed: "
"""What marks a line as a failure."""
SOURCE_END = ":"
"""What ends the name of what was read or run, above the lines that are quoted of it."""

# An action, followed by its count or its outcome.
_ACTION = re.compile(r"((?:ran|called|edited|wrote) `[^`]*`)(?: x\d+)?(?:: .*)?$", re.DOTALL)
_REPOSITORY = re.compile(r"(branch|commit|pull request) `")
_EDIT = re.compile(r"((?:edited|wrote) `[^`]*`)(?: x(\d{1,6}))?(: .*)?", re.DOTALL)


@dataclass(frozen=True)
class SummaryLine:
    """One statement of a summary, with its sources."""

    section: SummarySection
    text: str
    """The text without handles; for a quote, the words alone."""
    handles: Ranges = Ranges()
    weight: float = 0.5
    is_quote: bool = False
    source: str = ""
    """What was read or run to see a quoted line of a tool."""
    place: int = 0
    """Where its block has it, to put lines of one block in order."""

    def write_within(self, room: int) -> str:
        """Return the line in at most `room` characters, with its handles."""
        if len(self.full_text) <= room:
            return self.full_text
        tail = add_handles("", self.handles)
        return self._shorten(room - len(tail)) + tail

    @cached_property
    def full_text(self) -> str:
        return add_handles(self.wording, self.handles)

    @property
    def group(self) -> tuple[SummarySection, Ranges | str]:
        """A key: lines with the same one stand together, below their source or one handle."""
        return self.section, self.source or self.handles or self.text

    @cached_property
    def nested_text(self) -> str:
        """The line as it stands below the handles of its group."""
        return self.full_text if split_handles(self.wording)[1] else self.wording

    @cached_property
    def newest(self) -> int:
        """The newest position among its sources; 0 if it names none."""
        return self.handles.runs[-1][1] if self.handles else 0

    @cached_property
    def subject(self) -> tuple[SummarySection, str, bool]:
        """A key: of two lines with the same subject, the newer one replaces the older."""
        text = self.text
        if not self.is_quote:
            if action := _ACTION.match(text) or _REPOSITORY.match(text):
                text = action[1]
            elif self.section is SummarySection.BLOCKED:
                text = text.partition(FAILED_MARK)[0]
            else:
                text = text.rstrip(" .,;:!…").casefold()
        return self.section, text, self.is_quote

    @cached_property
    def _harmless_text(self) -> str:
        """The text, escaped so that it reads neither as the user's nor as a tool call."""
        text = defuse_tool_markup(self.text)
        return text if find_quote(text) is None else f"Log: {text}"

    @cached_property
    def wording(self) -> str:
        """The whole line without its handles."""
        return write_quote(self.text) if self.is_quote else _close_code(self._harmless_text)

    def _shorten(self, room: int) -> str:
        """Return the wording in at most `room` characters."""
        if len(self.wording) <= room:
            return self.wording
        if self.is_quote:
            return write_quote(shorten_inside(self.text, room - len(write_quote(""))))
        text = shorten_line(self._harmless_text, room)
        is_closed = _close_code(text) is text
        return text if is_closed else _close_code(shorten_line(self._harmless_text, room - 1))


def _close_code(text: str) -> str:
    return f"{text}`" if text.count("`") % 2 else text


def merge_lines(lines: Iterable[SummaryLine]) -> list[SummaryLine]:
    """Return one line for each subject: the newest words, with the handles and weight of all."""
    by_subject: dict[tuple[SummarySection, str, bool], SummaryLine] = {}
    for line in sorted(lines, key=attrgetter("newest")):
        older = by_subject.get(line.subject)
        by_subject[line.subject] = _join_lines(older, line) if older else line
    return list(by_subject.values())


def _join_lines(older: SummaryLine, newer: SummaryLine) -> SummaryLine:
    text = newer.text
    if not newer.is_quote and (edit := _EDIT.fullmatch(text)):
        before = _EDIT.fullmatch(older.text)
        times = int(edit[2] or 1) + (int(before[2] or 1) if before else 0)
        text = f"{edit[1]} x{times}{edit[3] or (before and before[3]) or ''}"
    return replace(
        newer,
        text=text,
        handles=older.handles | newer.handles,
        weight=max(older.weight, newer.weight),
    )


def count_heading_chars(section: SummarySection) -> int:
    """Return the most characters that a section takes in addition to its lines."""
    above = _HEADING_OF[section]
    own = len(f"### {section}\n") if section != above else 0
    return len(f"\n\n## {above}\n") + own


def lay_out_sections(written: Iterable[tuple[SummarySection, str]]) -> dict[str, str]:
    """Return the lines as bodies under their headings, in the order of the layout."""
    under: dict[SummarySection, list[str]] = {}
    for section, line in written:
        under.setdefault(section, []).append(f"- {line}")
    bodies: dict[str, str] = {}
    for heading, sections in SECTION_LAYOUT.items():
        lines = [
            line
            for section in sections
            if section in under
            for line in ([f"### {section}"] if section != heading else []) + under[section]
        ]
        if lines:
            bodies[heading] = "\n".join(lines)
    return bodies


# Lists of files, at the end of a summary

READ_TAG = "read-files"
MODIFIED_TAG = "modified-files"
_HARMLESS = str.maketrans("<>[\u201c\u201d", "\u2039\u203a(''")


def write_file_lists(
    digest: Digest, items: Iterable[WindowItem], room: int, modified_room: int = 0
) -> str:
    """Return both lists in tags, within `room` characters; modified files come first.

    Modified files may take `modified_room` characters if that is more. Only where whole paths have
    no room, they are relative to the folder that the agent worked in, which each list names.
    """
    items, root = tuple(items), ""
    if sum(len(path) + 1 for path in (*digest.modified_files, *digest.read_files)) > room:
        root = find_root(items, (*digest.modified_files, *digest.read_files))
    most = max(room, modified_room)
    modified = _write_list(MODIFIED_TAG, digest.modified_files, items, most, root)
    if digest.modified_files and not modified:
        return ""
    read = _write_list(READ_TAG, digest.read_files, items, room - len(modified) - 1, root)
    return "\n".join(filter(None, [read, modified]))


def find_root(items: Iterable[WindowItem], paths: Sequence[str]) -> str:
    """Return the folder, with a slash, that the agent worked in and most of the paths are in.

    Empty if no block says it, or if fewer than two of the paths are in it.
    """
    folders = Counter[str]()
    for item in items:
        if isinstance(item.block, ToolCall):
            text = item.block.arguments
        elif item.kind is BlockKind.DEVELOPER:
            text = item.block.text
        else:
            continue
        if found := _WORKED_IN.findall(text):
            folders.update(found)
    inside = {
        f"{folder}/": sum(path.startswith(f"{folder}/") for path in paths) for folder in folders
    }
    return max((one for one in inside if inside[one] > 1), key=inside.__getitem__, default="")


_WORKED_IN = re.compile(
    r"(?:\"(?:cwd|workdir|working_?dir(?:ectory)?)\\?\": ?\\?\"|<cwd>|[Ww]orking directory: ?"
    r"|\"cd )(/[\w@~+.-]+(?:/[\w@~+.-]+)*)"
)
"""What a call or a program says of the folder that an agent works in."""


def remove_file_lists(text: str) -> str:
    return _LISTS.sub("", text)


_LISTS = re.compile(rf"<({READ_TAG}|{MODIFIED_TAG})>\n.*?</\1>", re.DOTALL)


def _write_list(
    tag: str, paths: Sequence[str], items: Sequence[WindowItem], room: int, root: str
) -> str:
    note = f"... in {escape_path(root)}\n" if root else ""
    frame = len(f"<{tag}>\n{note}</{tag}>")
    shown = {path: escape_path(path.removeprefix(root)) for path in paths}
    if not shown:
        return ""
    if frame + sum(len(path) + 1 for path in shown.values()) > room:
        shown = _pick_newest(shown, items, room - frame - len("... and 99999 more\n"))
        if not shown:
            return ""
    lines = sorted(shown.values())
    if left_out := len(paths) - len(shown):
        lines.append(f"... and {left_out} more")
    return "\n".join([f"<{tag}>", *note.splitlines(), *lines, f"</{tag}>"])


def _pick_newest(shown: dict[str, str], items: Sequence[WindowItem], room: int) -> dict[str, str]:
    newest = {
        path: item.position
        for item in items
        if isinstance(item.block, ToolCall)
        for path in find_touched_files(item.block).paths
    }
    kept: dict[str, str] = {}
    for path in sorted(shown, key=lambda path: (-newest.get(path, 0), path)):
        room -= len(shown[path]) + 1
        if room < 0:
            break
        kept[path] = shown[path]
    return kept


def escape_path(path: str) -> str:
    """Return a path as one line that cannot end the list or begin another."""
    path = fold_lines(path).translate(_HARMLESS)
    return path if find_quote(path) is None else path.replace('"', "'")
