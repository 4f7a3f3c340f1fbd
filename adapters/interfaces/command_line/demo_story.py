"""What the demo tells somebody who has never seen any of this."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import get_terminal_size, which
from textwrap import fill

from ....domain.blocks import ToolCall
from ....projections.history_view import Entry
from ...runtime.sessions.stored_session import StoredSession
from ...transcripts.reports import FileReport
from .demo_tour import Tour
from .invocation import DATABASE_VARIABLE
from .printing import clipped, counted, say
from .what_left import Proof

BAR = 40
SUMMARY_LINES = 18
SECTION_LINES = 3
RECALLED_LINES = 2
LARGEST = 3


def tell_opening(*, sample: bool) -> None:
    say("cutbank keeps every turn an agent took, and serves a compacted view of it.", bold=True)
    if sample:
        _tell(
            "This demo takes a made-up coding session that is too long for comfort, and compacts "
            "it. `cutbank demo PATH` does the same with transcripts of your own."
        )


def tell_import(
    reports: Sequence[FileReport], sessions: Sequence[StoredSession], seconds: float
) -> None:
    tokens = sum(session.log.state.tokens for session in sessions)
    blocks = sum(session.log.state.blocks for session in sessions)
    _step("1. Import", seconds)
    _tell(
        f"{counted(len(reports), 'transcript')} read: {counted(len(sessions), 'session')}, "
        f"{counted(blocks, 'block')}, about {counted(tokens, 'token')}. Each block is an event of "
        "an append-only log. From here on nothing of it is changed or deleted."
    )
    if errors := sum(len(report.errors) for report in reports):
        say(f"{counted(errors, 'thing')} could not be read: `cutbank import` says which.")


def tell_too_small(reasons: dict[str, str], database: str) -> None:
    _step("2. Compact")
    if not reasons:
        say("There is no session in it, so there is nothing to compact.")
        return
    _tell("No session here can be compacted now, since that has to make its view smaller:")
    for name, reason in reasons.items():
        say(f"  {name}: {reason}")
    _step("Your turn")
    _tell("They are stored all the same: look at one, or recall a block of it by its handle.")
    name = next(iter(reasons))
    _commands(database, ("sessions",), ("show", name), ("recall", name, "last"))
    say("`cutbank demo` without a PATH takes a session that is long enough.")


def tell_tour(tour: Tour, database: str, seconds: float) -> None:
    _tell_compaction(tour)
    _tell_what_left(tour)
    _tell_summary(tour)
    _tell_recall(tour)
    _tell_verdict(tour)
    _tell_next(tour, database, seconds)


def _tell_compaction(tour: Tour) -> None:
    before, after = tour.before.tokens, tour.after.tokens
    _step("2. Compact", tour.compacted_in)
    _tell(
        f"In session {tour.session.key} old blocks leave what the model is sent, and a summary "
        f"takes their place. The summariser was `{tour.outcome.summariser}`: it needs no model "
        "and no network."
    )
    if tour.before.boundary:
        _tell("It had been compacted before, so that its view began with a summary already.")
    for name, view in (("before", tour.before), ("after", tour.after)):
        blocks = counted(len(view.entries), "block")
        say(f"  {name:<7}{_bar(view.tokens, before)}  {view.tokens:>9,} tokens, {blocks}")
    say(f"  {1 - after / before:.0%} smaller, and the log still holds all of it")


def _tell_what_left(tour: Tour) -> None:
    _step("3. What left the view")
    left = tour.left
    first, last = left.handles.runs[0][0], left.handles.runs[-1][1]
    say(f"  {counted(len(left.handles), 'block')} between #{first} and #{last}")
    for share in left.shares():
        say(f"  {share.kind:<12}{share.blocks:>7,} blocks {share.tokens:>10,} tokens")
    for number, entry in enumerate(left.largest(LARGEST)):
        say(f"  {'' if number else 'the largest':<13} {_named(tour, entry)}")


def _tell_summary(tour: Tour) -> None:
    summary = tour.after.summary
    if summary is None:
        return
    _step("4. The summary in its place")
    _tell(
        f"It has {counted(summary.tokens, 'token')}. `(#12)` after a line is the handle of the "
        "block that the line is taken from."
    )
    for line in _abridged(summary.text):
        say(f"  | {line}")


def _tell_recall(tour: Tour) -> None:
    _step("5. Recall")
    _tell("Whatever left is recalled by its handle, by you or by the agent itself, word for word.")
    for proof in tour.proofs:
        _tell_proof(tour, proof)


def _tell_proof(tour: Tour, proof: Proof) -> None:
    position = proof.recalled.position
    why = "the summary names it" if position in tour.cited else "the largest that left"
    say(f"  $ {_command('recall', tour.session.key, str(position))}")
    say(f"  {_named(tour, tour.left.before[position])} ({why})")
    lines = [line for line in proof.recalled.block.text.splitlines() if line.strip()]
    for line in lines[:RECALLED_LINES]:
        say(f"      {clipped(line, _width() - 6)}")
    if (more := len(lines) - RECALLED_LINES) > 0:
        say(f"      ... and {counted(more, 'more line')}")
    verdict = "as before it left" if proof.is_original else "NOT as before it left"
    say(f"  {proof.size:,} bytes, sha256 {proof.sha256[:16]}..., {verdict}")


def _tell_verdict(tour: Tour) -> None:
    verdict = tour.verdict
    _step("6. Verify")
    read = (
        f"The session was read again from its first event to its last: "
        f"{counted(verdict.positions, 'event')}, {counted(verdict.boundaries, 'boundary')}, "
        f"{counted(verdict.calls, 'recorded model call')}."
    )
    if verdict.ok:
        read += " Nothing is missing or changed, and each block has one known fate."
    _tell(read)
    for found in verdict.violations[:LARGEST]:
        say(f"  {found.rule}: {found.what}")


def _tell_next(tour: Tour, database: str, seconds: float) -> None:
    key = tour.session.key
    _step("Your turn")
    _tell(f"All of it took {seconds:.1f} s. The database is yours to look at, or to delete:")
    _commands(
        database,
        ("view", key),
        ("recall", key, "--search", "error"),
        ("compact", key, "--set", "keep_tokens=5000", "--dry-run"),
        ("revert", key),
    )


def _abridged(text: str) -> Iterator[str]:
    """The first lines of each section, and how many more it has; a screenful at most."""
    lines = [line for line in text.splitlines() if line.strip()]
    shown = in_section = left = 0
    for line in lines:
        if line.startswith("#"):
            in_section = 0
        in_section += 1
        if in_section <= SECTION_LINES and shown < SUMMARY_LINES:
            yield clipped(line, _width() - 4)
            shown += 1
        else:
            left += 1
    if left:
        yield f"... and {counted(left, 'more line')}"


def _named(tour: Tour, entry: Entry) -> str:
    """`#12 tool_result of Read, 140 tokens`."""
    asked = tour.left.before.get(entry.call or 0)
    what = f" of {asked.block.name}" if asked and isinstance(asked.block, ToolCall) else ""
    return f"#{entry.position} {entry.block.kind}{what}, {counted(entry.tokens, 'token')}"


def _step(title: str, seconds: float | None = None) -> None:
    say()
    say(title if seconds is None else f"{title} ({seconds:.2f} s)", bold=True)


def _tell(text: str) -> None:
    say(fill(text, _width(), break_long_words=False, break_on_hyphens=False))


def _commands(database: str, *commands: tuple[str, ...]) -> None:
    if os.name == "nt":
        say(f"  > set {DATABASE_VARIABLE}={database}")
    else:
        program = Path(sys.argv[0]).absolute()
        if which("cutbank") is None and program.name == "cutbank":
            # Run from an environment that is not active: the commands below would not be found.
            say(f"  $ export PATH={shlex.quote(str(program.parent))}:$PATH")
        say(f"  $ export {DATABASE_VARIABLE}={shlex.quote(database)}")
    for words in commands:
        say(f"  $ {_command(*words)}")


def _command(*words: str) -> str:
    return shlex.join(["cutbank", *words])


def _width() -> int:
    return min(100, max(60, get_terminal_size((88, 0)).columns))


def _bar(part: int, whole: int) -> str:
    full, empty = ("\u2588", "\u2591") if _can_say("\u2588\u2591") else ("#", ".")
    filled = min(BAR, max(1, round(BAR * part / whole)))
    return full * filled + empty * (BAR - filled)


def _can_say(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
