"""Holds what a demo did to a session, and explains it to new users."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import get_terminal_size, which
from textwrap import fill

from ....domain.blocks import AnyBlock, ToolCall
from ....domain.ranges import Ranges
from ....domain.token_estimate import KindShare, compute_kind_shares
from ....projections.history_view import HistoryView
from ....projections.view_content import ViewEntry
from ...runtime.compaction.outcome import CompactionOutcome
from ...runtime.sessions.recall import RecalledBlock
from ...runtime.sessions.stored_session import StoredSession
from ...transcripts.reports import FileReport, VerificationReport
from ..command_line.printing import can_print, clip_text, format_count, print_text
from ..command_line.verbs import DATABASE_VARIABLE

BAR_CELLS = 40
MAX_SUMMARY_LINES = 18
MAX_SECTION_LINES = 3
MAX_RECALLED_LINES = 2
_LARGEST_BLOCKS = 3


@dataclass(frozen=True, slots=True)
class RecallProof:
    recalled: RecalledBlock
    original: AnyBlock

    @property
    def content(self) -> bytes:
        return self.recalled.block.text.encode("utf-8", "surrogatepass")

    @property
    def sha256(self) -> str:
        return sha256(self.content).hexdigest()

    @property
    def is_original(self) -> bool:
        return self.recalled.block == self.original


@dataclass(frozen=True, slots=True)
class Tour:
    """A session before and after compaction, and the proof that nothing was lost."""

    session: StoredSession
    before: HistoryView
    after: HistoryView
    outcome: CompactionOutcome
    left: list[ViewEntry]
    """The blocks that left, as the view held them before; the largest first."""
    cited: Ranges
    """The handles of removed blocks that the summary names."""
    proofs: list[RecallProof]
    verdict: VerificationReport
    compaction_seconds: float
    """Seconds, including the summary."""

    @property
    def has_passed(self) -> bool:
        return self.verdict.is_ok and all(proof.is_original for proof in self.proofs)

    @property
    def handles(self) -> Ranges:
        return Ranges.of(entry.position for entry in self.left)

    def count_shares(self) -> tuple[KindShare, ...]:
        by_position = sorted(self.left, key=lambda entry: entry.position)
        return compute_kind_shares((entry.block.kind, entry.tokens) for entry in by_position)


def print_opening(*, sample: bool) -> None:
    print_text(
        "cutbank keeps every turn an agent took, and serves a compacted view of it.", bold=True
    )
    if sample:
        _print(
            "This demo takes a made-up coding session that is too long for comfort, and compacts "
            "it. `cutbank demo PATH` does the same with transcripts of your own."
        )


def print_import(
    reports: Sequence[FileReport], sessions: Sequence[StoredSession], seconds: float
) -> None:
    tokens = sum(session.log.state.tokens for session in sessions)
    blocks = sum(session.log.state.blocks for session in sessions)
    _print_step("1. Import", seconds)
    _print(
        f"{format_count(len(reports), 'transcript')} read: "
        f"{format_count(len(sessions), 'session')}, {format_count(blocks, 'block')}, "
        f"about {format_count(tokens, 'token')}. Each block is an event of an append-only log. "
        "From here on nothing of it is changed or deleted."
    )
    if errors := sum(len(report.errors) for report in reports):
        print_text(
            f"{format_count(errors, 'thing')} could not be read: `cutbank import` says which."
        )


def print_too_small(reasons: dict[str, str], database: str) -> None:
    _print_step("2. Compact")
    if not reasons:
        print_text("It has no sessions, so there is nothing to compact.")
        return
    _print("No session here can be compacted now, since that has to make its view smaller:")
    for name, reason in reasons.items():
        print_text(f"  {name}: {reason}")
    _print_step("Your turn")
    _print("They are stored all the same: look at one, or recall a block of it by its handle.")
    name = next(iter(reasons))
    _print_commands(database, ("sessions",), ("show", name), ("recall", name, "last"))
    print_text("`cutbank demo` without a PATH takes a session that is long enough.")


def print_tour(tour: Tour, database: str, seconds: float) -> None:
    _print_compaction(tour)
    _print_left_blocks(tour)
    _print_summary(tour)
    _print_step("5. Recall")
    _print("Whatever left is recalled by its handle, by you or by the agent itself, word for word.")
    for proof in tour.proofs:
        _print_proof(tour, proof)
    _print_verdict(tour)
    _print_step("Your turn")
    _print(f"All of it took {seconds:.1f} s. The database is yours to look at, or to delete:")
    key = tour.session.key
    _print_commands(
        database,
        ("view", key),
        ("recall", key, "--search", "error"),
        ("compact", key, "--set", "keep_tokens=5000", "--dry-run"),
        ("revert", key),
    )


def _print_compaction(tour: Tour) -> None:
    before, after = tour.before.tokens, tour.after.tokens
    _print_step("2. Compact", tour.compaction_seconds)
    _print(
        f"In session {tour.session.key} old blocks leave what the model is sent, and a summary "
        f"takes their place. The summarizer was `{tour.outcome.summarizer}`: it needs no model "
        "and no network."
    )
    if tour.before.boundary:
        _print("It had been compacted before, so that its view began with a summary already.")
    for name, view in (("before", tour.before), ("after", tour.after)):
        blocks = format_count(len(view.entries), "block")
        print_text(
            f"  {name:<7}{_format_bar(view.tokens, before)}  {view.tokens:>9,} tokens, {blocks}"
        )
    print_text(f"  {1 - after / before:.0%} smaller, and the log still holds all of it")


def _print_left_blocks(tour: Tour) -> None:
    _print_step("3. What left the view")
    first, last = tour.handles.runs[0][0], tour.handles.runs[-1][1]
    print_text(f"  {format_count(len(tour.left), 'block')} between #{first} and #{last}")
    for share in tour.count_shares():
        print_text(f"  {share.kind:<12}{share.blocks:>7,} blocks {share.tokens:>10,} tokens")
    for number, entry in enumerate(tour.left[:_LARGEST_BLOCKS]):
        print_text(f"  {'' if number else 'the largest':<13} {_describe_entry(tour, entry)}")


def _print_summary(tour: Tour) -> None:
    summary = tour.after.summary
    if summary is None:
        return
    _print_step("4. The summary in its place")
    _print(
        f"It has {format_count(summary.tokens, 'token')}. `(#12)` after a line is the handle of "
        "the block that the line is taken from."
    )
    for line in _abridge(summary.text):
        print_text(f"  | {line}")


def _print_proof(tour: Tour, proof: RecallProof) -> None:
    position = proof.recalled.position
    (entry,) = (one for one in tour.left if one.position == position)
    why = "the summary names it" if position in tour.cited else "the largest that left"
    print_text(f"  $ {shlex.join(['cutbank', 'recall', tour.session.key, str(position)])}")
    print_text(f"  {_describe_entry(tour, entry)} ({why})")
    lines = [line for line in proof.recalled.block.text.splitlines() if line.strip()]
    for line in lines[:MAX_RECALLED_LINES]:
        print_text(f"      {clip_text(line, _text_width() - 6)}")
    if (more := len(lines) - MAX_RECALLED_LINES) > 0:
        print_text(f"      ... and {format_count(more, 'more line')}")
    verdict = "as before it left" if proof.is_original else "NOT as before it left"
    size, digest = len(proof.content), proof.sha256[:16]
    print_text(f"  {size:,} bytes, sha256 {digest}..., {verdict}")


def _print_verdict(tour: Tour) -> None:
    verdict = tour.verdict
    _print_step("6. Verify")
    read = (
        f"The session was read again from its first event to its last: "
        f"{format_count(verdict.positions, 'event')}, "
        f"{format_count(verdict.boundaries, 'boundary')}, "
        f"{format_count(verdict.calls, 'recorded model call')}."
    )
    if verdict.is_ok:
        read += " Nothing is missing or changed, and each block has one known fate."
    _print(read)
    for found in verdict.violations[:_LARGEST_BLOCKS]:
        print_text(f"  {found.rule}: {found.what}")


def _abridge(text: str) -> Iterator[str]:
    """Yield the first lines of each section, and the number of the others; one screen at most."""
    lines = [line for line in text.splitlines() if line.strip()]
    shown = in_section = left = 0
    for line in lines:
        if line.startswith("#"):
            in_section = 0
        in_section += 1
        if in_section <= MAX_SECTION_LINES and shown < MAX_SUMMARY_LINES:
            yield clip_text(line, _text_width() - 4)
            shown += 1
        else:
            left += 1
    if left:
        yield f"... and {format_count(left, 'more line')}"


def _describe_entry(tour: Tour, entry: ViewEntry) -> str:
    """Return `#12 tool_result of Read, 140 tokens`."""
    asked = (one.block for one in tour.left if one.position == entry.call)
    names = [block.name for block in asked if isinstance(block, ToolCall)]
    what = f" of {names[0]}" if names else ""
    return f"#{entry.position} {entry.block.kind}{what}, {format_count(entry.tokens, 'token')}"


def _print_step(title: str, seconds: float | None = None) -> None:
    print_text()
    print_text(title if seconds is None else f"{title} ({seconds:.2f} s)", bold=True)


def _print(text: str) -> None:
    print_text(fill(text, _text_width(), break_long_words=False, break_on_hyphens=False))


def _print_commands(database: str, *commands: tuple[str, ...]) -> None:
    if os.name == "nt":
        print_text(f"  > set {DATABASE_VARIABLE}={database}")
    else:
        program = Path(sys.argv[0]).absolute()
        if which("cutbank") is None and program.name == "cutbank":
            # The environment may not be active: the commands below would not be found.
            print_text(f"  $ export PATH={shlex.quote(str(program.parent))}:$PATH")
        print_text(f"  $ export {DATABASE_VARIABLE}={shlex.quote(database)}")
    for words in commands:
        print_text(f"  $ {shlex.join(['cutbank', *words])}")


def _text_width() -> int:
    return min(100, max(60, get_terminal_size((88, 0)).columns))


def _format_bar(part: int, whole: int) -> str:
    full, empty = ("\u2588", "\u2591") if can_print("\u2588\u2591") else ("#", ".")
    filled = min(BAR_CELLS, max(1, round(BAR_CELLS * part / whole)))
    return full * filled + empty * (BAR_CELLS - filled)
