"""Lists a digest's files at the end of a summary, the newest of them if room is short."""

import re
from collections.abc import Iterable, Sequence

from ..blocks import ToolCall
from ..compaction_events import Digest
from ..digest import find_touched_files
from ..item import Item
from .clean_text import fold_lines
from .quotes import find_quote

READ_TAG = "read-files"
MODIFIED_TAG = "modified-files"
_HARMLESS = str.maketrans("<>[\u201c\u201d", "\u2039\u203a(''")
_MODIFIED_SHARE = 0.65
"""The share of the room for modified files; the rest is for files that were read."""


def write_file_lists(digest: Digest, items: Iterable[Item], room: int) -> str:
    """Return both lists in tags, within `room` characters; modified files come first."""
    items = tuple(items)
    modified = _write_list(MODIFIED_TAG, digest.modified_files, items, int(room * _MODIFIED_SHARE))
    if digest.modified_files and not modified:
        return ""
    read = _write_list(READ_TAG, digest.read_files, items, room - len(modified) - 1)
    return "\n".join(filter(None, [read, modified]))


def remove_file_lists(text: str) -> str:
    return _LISTS.sub("", text)


_LISTS = re.compile(rf"<({READ_TAG}|{MODIFIED_TAG})>\n.*?</\1>", re.DOTALL)


def _write_list(tag: str, paths: Sequence[str], items: Sequence[Item], room: int) -> str:
    frame = len(f"<{tag}>\n</{tag}>")
    shown = {path: escape_path(path) for path in paths}
    if not shown:
        return ""
    if frame + sum(len(path) + 1 for path in shown.values()) > room:
        shown = _pick_newest(shown, items, room - frame - len("... and 99999 more\n"))
        if not shown:
            return ""
    lines = sorted(shown.values())
    if left_out := len(paths) - len(shown):
        lines.append(f"... and {left_out} more")
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"])


def _pick_newest(shown: dict[str, str], items: Sequence[Item], room: int) -> dict[str, str]:
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
