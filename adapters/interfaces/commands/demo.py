"""Implements `demo`: compacts a long session, and proves that nothing was lost."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter
from typing import Any

import typer

from ....domain.blocks import Kind
from ....domain.errors import ImportFileError, NothingToCompactError
from ....domain.ranges import Ranges
from ....domain.token_estimate import estimate_block
from ....projections.history_view import HistoryView
from ...analysis.verifier import verify
from ...runtime.compaction.outcome import CompactionOutcome
from ...runtime.importing.importer import import_path
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ..command_line.outcomes import outcome_to_json
from ..command_line.printing import pick, print_json, show_progress
from ..command_line.sessions import open_call_store
from ..command_line.verbs import Invocation, argument
from ..sample import write_sample
from .demo_story import (
    RecallProof,
    Tour,
    print_import,
    print_opening,
    print_too_small,
    print_tour,
)
from .verify import verdict_to_json

MAX_TRIED_SESSIONS = 5


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
    call, transcripts = _prepare_demo(call, path)
    with open_call_store(call, creates=True) as store:
        if not call.as_json:
            print_opening(sample=path is None)
        with show_progress("importing", in_bytes=True) as progress:
            imported = import_path(store, transcripts, namespace=call.namespace, progress=progress)
            reports = list(imported)
        names = list(dict.fromkeys(name for report in reports for name in report.sessions))
        sessions = [store.session(name, namespace=call.namespace, create=False) for name in names]
        sessions.sort(key=lambda session: -session.log.state.tokens)
        if not call.as_json:
            print_import(reports, sessions, perf_counter() - began)
        tour, reasons = _run_tour(store, sessions)
        seconds = perf_counter() - began
        if call.as_json:
            print_json(
                {
                    "database": store.name,
                    "path": str(transcripts),
                    "seconds": round(seconds, 3),
                    "too_small": reasons,
                    "files": len(reports),
                    "errors": sum(len(report.errors) for report in reports),
                    "sessions": names,
                    **_tour_to_json(tour),
                }
            )
        elif tour is None:
            print_too_small(reasons, store.name)
        else:
            print_tour(tour, store.name, seconds)
    if not sessions or (tour and not tour.has_passed):
        raise typer.Exit(1)


def _prepare_demo(call: Invocation, path: Path | None) -> tuple[Invocation, Path]:
    """Choose the database and the transcripts; make missing ones in a temporary folder."""
    if call.db is not None and path is not None:
        return call, path
    folder = Path(mkdtemp(prefix="cutbank-demo-"))
    if call.db is None:
        call = call.merge(Invocation(db=str(folder / "demo.db")))
    if path is None:
        path = folder / "sample.jsonl"
        write_sample(path)
    return call, path


def _run_tour(
    store: SessionStore, sessions: Sequence[StoredSession]
) -> tuple[Tour | None, dict[str, str]]:
    """Compact the largest possible view; also return the reasons why earlier ones could not be."""
    reasons: dict[str, str] = {}
    # The view of a log with recorded compactions may be small.
    views = [(session, session.view()) for session in sessions[:MAX_TRIED_SESSIONS]]
    for session, before in sorted(views, key=lambda pair: -pair[1].tokens):
        began = perf_counter()
        try:
            outcome = session.compact()
        except NothingToCompactError as error:
            since = before.boundary and "since the last compaction "
            reasons[session.key] = f"{since or ''}{error}"
            continue
        if outcome.compacted:
            return _make_tour(store, session, before, outcome, perf_counter() - began), reasons
        reasons[session.key] = outcome.reason
    return None, reasons


def _make_tour(
    store: SessionStore,
    session: StoredSession,
    before: HistoryView,
    outcome: CompactionOutcome,
    seconds: float,
) -> Tour:
    """Recall a tool's result that the summary names, if any, and the largest block that left."""
    after = session.view()
    left = [entry for entry in before.entries if entry.position in outcome.left]
    left.sort(key=lambda entry: -entry.tokens)
    cited = after.summary.cites if after.summary else Ranges()
    named = [entry for entry in left if entry.position in cited]
    results = [entry for entry in named if entry.block.kind is Kind.TOOL_RESULT]
    chosen = {entry.position: entry for entry in [*(results or named)[:1], *left[:1]]}
    proofs = []
    for entry in chosen.values():
        (found,) = session.recall(entry.position)
        proofs.append(RecallProof(found, entry.block))
    return Tour(
        session, before, after, outcome, left, cited, proofs, verify(store, session), seconds
    )


def _tour_to_json(tour: Tour | None) -> dict[str, Any]:
    """Return a tour as `demo --json` prints it; all values are null without a tour."""
    if tour is None:
        names = ("session", "before", "after", "compaction", "left", "recalled", "verify")
        return dict.fromkeys(names)
    views = {"before": tour.before, "after": tour.after}
    largest = [
        {"handle": f"#{one.position}", "kind": one.block.kind, "tokens": estimate_block(one.block)}
        for one in tour.left[:5]
    ]
    return {
        "session": tour.session.key,
        **{
            name: {"tokens": view.tokens, "blocks": len(view.entries)}
            for name, view in views.items()
        },
        "compaction": outcome_to_json(tour.outcome, tour.after.coordinate.lineage),
        "left": {
            "handles": tour.handles,
            "kinds": {share.kind: pick(share, "blocks tokens") for share in tour.count_shares()},
            "largest": largest,
        },
        "recalled": [
            {
                **pick(proof.recalled, "handle kind=block.kind"),
                "bytes": len(proof.content),
                **pick(proof, "sha256 original=is_original"),
            }
            for proof in tour.proofs
        ],
        "verify": verdict_to_json(tour.verdict),
    }
