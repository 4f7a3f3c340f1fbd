"""A session's log, its view and its recalled blocks, in lines for people."""

import sys
from collections.abc import Iterable, Sequence

from ....domain.compaction import MAIN
from ....projections.entry import Entry
from ....projections.history_view import HistoryView
from ...analysis.auditing.diffs import count_of
from ...runtime.sessions.recall import Recalled
from .block_lines import body, heading, marks, refusal
from .coordinates import coordinate
from .logged_blocks import BlockLog, Logged
from .printing import clipped, counted, line_width, readable, say
from .session_json import described

INDENT = "    "
EXCERPT = 100
"""Characters of a line that stands for a longer text."""
FOUND_LINES = 3
"""How many of a block's lines that hold what was searched for are shown."""


def say_log(log: BlockLog, blocks: Iterable[Logged], *, brief: bool) -> None:
    """The log in order; a line where the view's boundary lies, and what it took out is marked."""
    _say_session(log)
    turn = None
    boundary = log.view.boundary
    ahead = boundary.after if boundary else 0
    for one in blocks:
        if boundary and ahead and one.position > ahead:
            say(f"-- compaction {_count(log)} decided on all above --")
            ahead = 0
        if one.turn != turn:
            turn = one.turn
            say(f"\nturn {turn}" if turn else "\nbefore the first turn", bold=True)
        top = heading(one.position, one.block, marks(one), brief=brief)
        if brief:
            say(f"{top}  {clipped(one.block.text, max(20, line_width() - len(top) - 2))}")
        else:
            _say_block(top, body(one.block))


def say_view(view: HistoryView, *, brief: bool = False) -> None:
    """What is sent, in the order in which it is sent."""
    say(
        f"{view.session}: {counted(view.tokens, 'token')} estimated,"
        f" {counted(len(view.entries), 'block')},"
        f" as of {coordinate(view.coordinate)}"
    )
    say(f"fingerprint {view.fingerprint}")
    if view.inherited_from:
        say(f"its boundary was inherited from {view.inherited_from}")
    if brief:
        _say_briefly(view)
        return
    if view.system_prompt is not None:
        _say_block("\nsystem prompt", [view.system_prompt])
    if view.tool_definitions:
        say(f"\n{counted(len(view.tool_definitions), 'tool')} offered", bold=True)
    if summary := view.summary:
        top = f"\nsummary, {counted(summary.tokens, 'token')}, stands for {summary.covers}"
        _say_block(top, [summary.text])
    say()
    for entry in view.entries:
        shown = body(entry.block) if entry.shown is None else [entry.shown]
        _say_block(_top(entry), shown)


def _say_briefly(view: HistoryView) -> None:
    """A line for each thing that is sent."""
    tops = [("system prompt", view.system_prompt)] if view.system_prompt is not None else []
    tops += [(f"{counted(len(view.tool_definitions), 'tool')} offered", "")] * bool(
        view.tool_definitions
    )
    if summary := view.summary:
        tops.append((f"summary, {counted(summary.tokens, 'token')}", summary.text))
    for top, text in tops + [(_top(entry, brief=True), entry.text) for entry in view.entries]:
        say(f"{top}  {clipped(text, max(20, line_width() - len(top) - 2))}".rstrip())


def _top(entry: Entry, *, brief: bool = False) -> str:
    marked = ["pinned"] if entry.is_pinned else []
    marked += ["shortened"] if entry.shown is not None else []
    return heading(entry.position, entry.block, marked, entry.tokens, brief=brief)


def say_recalled(blocks: Sequence[Recalled], search: str | None) -> None:
    """Whole blocks; of those that a search found, the lines that hold the text."""
    for one in blocks:
        top = heading(one.position, one.block, refusal(one.block))
        if search is None:
            _say_block(top, body(one.block))
        else:
            _say_block(top, _holding(one.block.text, search))
    if search is not None:
        whole = f"`cutbank recall SESSION {blocks[0].position}`"
        say(f"{counted(len(blocks), 'block')}; {whole} gives all of one.")


def write_raw(blocks: Sequence[Recalled]) -> None:
    """The texts as bytes, one after another and nothing between them."""
    sys.stdout.flush()
    for one in blocks:
        sys.stdout.buffer.write(one.block.text.encode("utf-8", "surrogatepass"))
    sys.stdout.buffer.flush()


def _say_session(log: BlockLog) -> None:
    about = described(log.session)
    title = f" - {about['title']}" if about["title"] else ""
    say(f"{about['session']}{title}", bold=True)
    source = f", imported from {about['source']}" if about["source"] else ""
    fork = f", a fork of {about['forked_from']}" if about["forked_from"] else ""
    names = {"turn": "turn", "blocks": "block", "tokens": "token", "open_calls": "open call"}
    sizes = ", ".join(counted(about[key], thing) for key, thing in names.items())
    say(f"{sizes}, ends at #{about['position']}{source}{fork}")
    if about["prepared"]:
        count = count_of(log.session, about["prepared"], MAIN)
        say(f"compaction {count} is prepared, to be served at the threshold")
    if log.view.boundary:
        at = log.view.coordinate
        say(
            f"{counted(log.view.tokens, 'token')} estimated in the view on {at.lineage},"
            f" compaction {_count(log)}"
        )


def _count(log: BlockLog) -> int:
    """Which compaction the view begins at."""
    assert log.view.boundary is not None, "what begins at none is not counted"
    number = log.view.boundary.originator_version
    return count_of(log.session, number, log.view.coordinate.lineage)


def _say_block(top: str, pieces: Iterable[str]) -> None:
    say(top, bold=True)
    for piece in pieces:
        for line in readable(piece).split("\n"):
            say(INDENT + line if line else "")


def _holding(text: str, search: str) -> list[str]:
    wanted = search.casefold()
    lines = [line for line in text.splitlines() if wanted in line.casefold()]
    shown = [clipped(line, EXCERPT) for line in lines[:FOUND_LINES]]
    left = len(lines) - len(shown)
    return shown + ([f"... and {counted(left, 'more line')}"] if left else [])
