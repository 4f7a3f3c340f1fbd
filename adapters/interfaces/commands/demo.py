"""Implements `demo`: compacts a long session, and proves that nothing was lost."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import which
from tempfile import mkdtemp
from time import perf_counter
from typing import Any

import typer

from ....domain.blocks import Kind
from ....domain.errors import ImportFileError, NothingToCompactError
from ....domain.ranges import Ranges
from ....domain.token_estimate import compute_kind_shares, estimate_block
from ....projections.history_view import HistoryView
from ....projections.view_content import ViewEntry
from ...analysis.verifier import verify
from ...runtime.compaction.outcome import CompactionOutcome
from ...runtime.importing.importer import import_path
from ...runtime.sessions.block_lookup import RecalledBlock
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ...transcripts.reports import VerificationReport
from ..command_line.outcomes import outcome_to_json
from ..command_line.printing import (
    clip_text,
    format_bar,
    format_count,
    format_shares,
    get_width,
    pick,
    print_fields,
    print_json,
    print_list,
    print_text,
    show_progress,
)
from ..command_line.sessions import open_call_store
from ..command_line.verbs import DATABASE_VARIABLE, Invocation, argument
from ..sample import write_sample
from .verify import describe_verdict, verdict_to_json

MAX_TRIED_SESSIONS = 5
MAX_SUMMARY_LINES = 12


@dataclass(frozen=True, slots=True)
class Tour:
    """A session before and after its compaction, and the proof that nothing was lost."""

    session: StoredSession
    before: HistoryView
    after: HistoryView
    outcome: CompactionOutcome
    left: list[ViewEntry]
    """The blocks that left, as the view held them before; the largest first."""
    recalled: list[tuple[RecalledBlock, bool]]
    """Some of them as they were recalled, and whether each is as it was."""
    verdict: VerificationReport


def demo(
    call: Invocation,
    path: Path | None = argument("PATH", "Your transcripts; else a sample that is shipped.", None),
) -> None:
    """Show what this is: compact a long session, recall what left.

    Works on a new database in a temporary folder, or on the one that --db names.
    """
    began = perf_counter()
    if path is not None and not path.exists():
        raise ImportFileError(f"{path} does not exist")
    folder = None if call.db and path else Path(mkdtemp(prefix="cutbank-demo-"))
    if folder and not call.db:
        call = call.merge(Invocation(db=str(folder / "demo.db")))
    if folder and not path:
        write_sample(path := folder / "sample.jsonl")
    assert path is not None, "it is named, or was written"
    with open_call_store(call, creates=True) as store:
        with show_progress("importing", in_bytes=True) as progress:
            imported = import_path(store, path, namespace=call.namespace, progress=progress)
            reports = list(imported)
        names = list(dict.fromkeys(name for report in reports for name in report.sessions))
        sessions = [store.session(name, namespace=call.namespace, create=False) for name in names]
        tour, reasons = _run_tour(store, sessions)
        document = {
            "database": store.name,
            "path": str(path),
            "seconds": round(perf_counter() - began, 3),
            "too_small": reasons,
            "files": len(reports),
            "errors": sum(len(report.errors) for report in reports),
            "sessions": names,
            **_tour_to_json(tour),
        }
        if call.as_json:
            print_json(document)
        else:
            _print_demo(document, tour, sum(session.log.state.tokens for session in sessions))
    if not sessions or (tour and not _has_passed(tour)):
        raise typer.Exit(1)


def _run_tour(
    store: SessionStore, sessions: Sequence[StoredSession]
) -> tuple[Tour | None, dict[str, str]]:
    """Compact the largest possible view; also return the reasons why others could not be."""
    reasons: dict[str, str] = {}
    largest = sorted(sessions, key=lambda session: -session.log.state.tokens)[:MAX_TRIED_SESSIONS]
    # The view of a log with recorded compactions may be small.
    views = [(session, session.view()) for session in largest]
    for session, before in sorted(views, key=lambda pair: -pair[1].tokens):
        try:
            outcome = session.compact()
        except NothingToCompactError as error:
            since = "since the last compaction " if before.boundary else ""
            reasons[session.key] = f"{since}{error}"
            continue
        if outcome.compacted:
            return _make_tour(store, session, before, outcome), reasons
        reasons[session.key] = outcome.reason
    return None, reasons


def _make_tour(
    store: SessionStore, session: StoredSession, before: HistoryView, outcome: CompactionOutcome
) -> Tour:
    """Recall a tool's result that the summary names, if any, and the largest block that left."""
    after = session.view()
    left = [entry for entry in before.entries if entry.position in outcome.left]
    left.sort(key=lambda entry: -entry.tokens)
    cited = after.summary.cites if after.summary else Ranges()
    named = [entry for entry in left if entry.position in cited]
    results = [entry for entry in named if entry.block.kind is Kind.TOOL_RESULT]
    chosen = {entry.position: entry.block for entry in [*(results or named)[:1], *left[:1]]}
    recalled = [
        (found, found.block == block)
        for position, block in chosen.items()
        for found in session.recall(position)
    ]
    return Tour(session, before, after, outcome, left, recalled, verify(store, session))


def _has_passed(tour: Tour) -> bool:
    return tour.verdict.is_ok and all(is_original for _, is_original in tour.recalled)


def _tour_to_json(tour: Tour | None) -> dict[str, Any]:
    """Return a tour as `demo --json` prints it; all values are null without a tour."""
    if tour is None:
        names = ("session", "before", "after", "compaction", "left", "recalled", "verify")
        return dict.fromkeys(names)
    shares = compute_kind_shares((entry.block.kind, entry.tokens) for entry in tour.left)
    return {
        "session": tour.session.key,
        "before": {"tokens": tour.before.tokens, "blocks": len(tour.before.entries)},
        "after": {"tokens": tour.after.tokens, "blocks": len(tour.after.entries)},
        "compaction": outcome_to_json(tour.outcome, tour.after.coordinate.lineage),
        "left": {
            "handles": Ranges.of(entry.position for entry in tour.left),
            "kinds": {share.kind: pick(share, "blocks tokens") for share in shares},
            "largest": [
                {
                    "handle": f"#{one.position}",
                    "kind": one.block.kind,
                    "tokens": estimate_block(one.block),
                }
                for one in tour.left[:5]
            ],
        },
        "recalled": [
            {
                **pick(found, "handle kind=block.kind"),
                "bytes": len(content := found.block.text.encode("utf-8", "surrogatepass")),
                "sha256": sha256(content).hexdigest(),
                "original": is_original,
            }
            for found, is_original in tour.recalled
        ],
        "verify": verdict_to_json(tour.verdict),
    }


def _print_demo(document: dict[str, Any], tour: Tour | None, tokens: int) -> None:
    print_text(
        "cutbank keeps every turn an agent took, and serves a compacted view of it.", bold=True
    )
    print_text()
    files, sessions = document["files"], document["sessions"]
    read = f"{format_count(files, 'transcript')} with {format_count(len(sessions), 'session')}"
    errors = f", {format_count(document['errors'], 'error')}" if document["errors"] else ""
    fields = [("imported", f"{read}, about {format_count(tokens, 'token')}{errors}")]
    if tour is None:
        print_fields(fields)
        reasons = [f"{name}: {reason}" for name, reason in document["too_small"].items()]
        print_list("No session here can be compacted now", reasons, None)
        if sessions:
            _print_commands(document, ("show", sessions[0]), ("recall", sessions[0], "last"))
        print_text("`cutbank demo` without a PATH takes a session that is long enough.")
        return
    print_fields([*fields, *_tour_fields(document, tour)])
    if summary := tour.after.summary:
        lines = [line for line in summary.text.splitlines() if line.strip()]
        shown = [clip_text(line, get_width() - 2) for line in lines]
        heading = f"The summary of {format_count(summary.tokens, 'token')}: (#12) names a block"
        print_list(heading, shown, MAX_SUMMARY_LINES)
    key = tour.session.key
    dry_run = ("compact", key, "--set", "keep_tokens=5000", "--dry-run")
    _print_commands(
        document,
        ("view", key),
        ("recall", key, tour.recalled[0][0].handle[1:]),
        dry_run,
        ("revert", key),
    )


def _tour_fields(document: dict[str, Any], tour: Tour) -> Iterator[tuple[str, str]]:
    by = tour.outcome.summarizer
    again = "; it had been compacted before" if tour.before.boundary else ""
    yield "compacted", f"{tour.session.key}, with a summary by {by}{again}"
    for name, view in (("before", tour.before), ("after", tour.after)):
        bar = format_bar(view.tokens / tour.before.tokens)
        yield name, f"{bar} {view.tokens:>7,} tokens, {format_count(len(view.entries), 'block')}"
    shares = compute_kind_shares((entry.block.kind, entry.tokens) for entry in tour.left)
    yield "left", f"{format_count(len(tour.left), 'block')}: {format_shares(shares)}"
    for one in document["recalled"]:
        as_was = "as before it left" if one["original"] else "NOT as before it left"
        size = f"{one['bytes']:,} bytes, sha256 {one['sha256'][:16]}..., {as_was}"
        yield "recalled", f"{one['handle']} {one['kind']}: {size}"
    yield "verified", describe_verdict(tour.verdict)
    yield "took", f"{document['seconds']:.1f} s"


def _print_commands(document: dict[str, Any], *commands: tuple[str, ...]) -> None:
    program = Path(sys.argv[0]).absolute()
    # The environment may not be active: then the shell does not find the name alone.
    name = str(program) if which("cutbank") is None and program.name == "cutbank" else "cutbank"
    lines = [shlex.join([name, *words]) for words in commands]
    database = f"export {DATABASE_VARIABLE}={shlex.quote(document['database'])}"
    print_text()
    print_text("Your turn", bold=True)
    for line in (database, *lines):
        print_text(f"  $ {line}", verbatim=True)
