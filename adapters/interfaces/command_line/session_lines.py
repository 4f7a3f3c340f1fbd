"""Prints a session's log, its view and its recalled blocks."""

import sys
from collections.abc import Iterable, Sequence

from ....domain.compaction import MAIN_LINEAGE
from ....projections.history_view import HistoryView
from ....projections.view_content import ViewEntry
from ...analysis.auditing.diffs import find_compaction_number
from ...runtime.sessions.recall import RecalledBlock
from .block_lines import block_status_marks, format_block_body, format_block_heading, format_refusal
from .coordinates import format_coordinate
from .logged_blocks import BlockLog, LoggedBlock
from .printing import clip_text, escape_controls, format_count, get_line_width, print_text
from .session_json import session_to_json

_INDENT = "    "
_EXCERPT_CHARACTERS = 100
MAX_FOUND_LINES = 3
"""Matching lines shown of a block."""


def print_log(log: BlockLog, blocks: Iterable[LoggedBlock], *, brief: bool) -> None:
    """Print the log in order, with a line at the view's boundary and marks on what it removed."""
    _print_session(log)
    turn = None
    boundary = log.view.boundary
    ahead = boundary.after if boundary else 0
    for one in blocks:
        if boundary and ahead and one.position > ahead:
            print_text(f"-- compaction {_compaction_number(log)} decided on all above --")
            ahead = 0
        if one.turn != turn:
            turn = one.turn
            print_text(f"\nturn {turn}" if turn else "\nbefore the first turn", bold=True)
        top = format_block_heading(one.position, one.block, block_status_marks(one), brief=brief)
        if brief:
            print_text(
                f"{top}  {clip_text(one.block.text, max(20, get_line_width() - len(top) - 2))}"
            )
        else:
            _print_block(top, format_block_body(one.block))


def print_view(view: HistoryView, *, brief: bool = False) -> None:
    """Print a view in the order in which it is sent."""
    print_text(
        f"{view.session}: {format_count(view.tokens, 'token')} estimated,"
        f" {format_count(len(view.entries), 'block')},"
        f" as of {format_coordinate(view.coordinate)}"
    )
    print_text(f"fingerprint {view.fingerprint}")
    if view.inherited_from:
        print_text(f"its boundary was inherited from {view.inherited_from}")
    if brief:
        _print_view_briefly(view)
        return
    if view.system_prompt is not None:
        _print_block("\nsystem prompt", [view.system_prompt])
    if view.tool_definitions:
        print_text(f"\n{format_count(len(view.tool_definitions), 'tool')} offered", bold=True)
    if summary := view.summary:
        top = f"\nsummary, {format_count(summary.tokens, 'token')}, stands for {summary.covers}"
        _print_block(top, [summary.text])
    print_text()
    for entry in view.entries:
        shown = format_block_body(entry.block) if entry.shown is None else [entry.shown]
        _print_block(_format_heading(entry), shown)


def _print_view_briefly(view: HistoryView) -> None:
    tops = [("system prompt", view.system_prompt)] if view.system_prompt is not None else []
    tops += [(f"{format_count(len(view.tool_definitions), 'tool')} offered", "")] * bool(
        view.tool_definitions
    )
    if summary := view.summary:
        tops.append((f"summary, {format_count(summary.tokens, 'token')}", summary.text))
    for top, text in tops + [
        (_format_heading(entry, brief=True), entry.text) for entry in view.entries
    ]:
        print_text(f"{top}  {clip_text(text, max(20, get_line_width() - len(top) - 2))}".rstrip())


def _format_heading(entry: ViewEntry, *, brief: bool = False) -> str:
    marked = ["pinned"] if entry.is_pinned else []
    marked += ["shortened"] if entry.shown is not None else []
    return format_block_heading(entry.position, entry.block, marked, entry.tokens, brief=brief)


def print_recalled(blocks: Sequence[RecalledBlock], search: str | None) -> None:
    """Print whole blocks; with a search, only the matching lines."""
    for one in blocks:
        top = format_block_heading(one.position, one.block, format_refusal(one.block))
        if search is None:
            _print_block(top, format_block_body(one.block))
        else:
            _print_block(top, _matching_lines(one.block.text, search))
    if search is not None:
        whole = f"`cutbank recall SESSION {blocks[0].position}`"
        print_text(f"{format_count(len(blocks), 'block')}; {whole} gives all of one.")


def write_raw(blocks: Sequence[RecalledBlock]) -> None:
    """Write the texts as bytes, without separators."""
    sys.stdout.flush()
    for one in blocks:
        sys.stdout.buffer.write(one.block.text.encode("utf-8", "surrogatepass"))
    sys.stdout.buffer.flush()


def _print_session(log: BlockLog) -> None:
    about = session_to_json(log.session)
    title = f" - {about['title']}" if about["title"] else ""
    print_text(f"{about['session']}{title}", bold=True)
    source = f", imported from {about['source']}" if about["source"] else ""
    fork = f", a fork of {about['forked_from']}" if about["forked_from"] else ""
    names = {"turn": "turn", "blocks": "block", "tokens": "token", "open_calls": "open call"}
    sizes = ", ".join(format_count(about[key], thing) for key, thing in names.items())
    print_text(f"{sizes}, ends at #{about['position']}{source}{fork}")
    if about["prepared"]:
        count = find_compaction_number(log.session, about["prepared"], MAIN_LINEAGE)
        print_text(f"compaction {count} is prepared, to be served at the threshold")
    if log.view.boundary:
        at = log.view.coordinate
        print_text(
            f"{format_count(log.view.tokens, 'token')} estimated in the view on {at.lineage},"
            f" compaction {_compaction_number(log)}"
        )


def _compaction_number(log: BlockLog) -> int:
    """Return the compaction that the view begins at."""
    assert log.view.boundary is not None, "what begins at none is not counted"
    number = log.view.boundary.originator_version
    return find_compaction_number(log.session, number, log.view.coordinate.lineage)


def _print_block(top: str, pieces: Iterable[str]) -> None:
    print_text(top, bold=True)
    for piece in pieces:
        for line in escape_controls(piece).split("\n"):
            print_text(_INDENT + line if line else "")


def _matching_lines(text: str, search: str) -> list[str]:
    wanted = search.casefold()
    lines = [line for line in text.splitlines() if wanted in line.casefold()]
    shown = [clip_text(line, _EXCERPT_CHARACTERS) for line in lines[:MAX_FOUND_LINES]]
    left = len(lines) - len(shown)
    return shown + ([f"... and {format_count(left, 'more line')}"] if left else [])
