"""Compacts one session and proves that nothing was lost, for the demo."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ....domain.errors import NothingToCompactError
from ....domain.ranges import Ranges
from ....domain.token_estimate import estimate_block
from ....projections.history_view import HistoryView
from ...analysis.verifier import verify
from ...runtime.compaction.outcome import CompactionOutcome
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ...transcripts.reports import VerificationReport
from . import cli_compacting, cli_verify
from .left_blocks import LeftBlocks, RecallProof
from .printing import list_handle_ranges

MAX_TRIED_SESSIONS = 5


@dataclass(frozen=True, slots=True)
class Tour:
    """A session before and after compaction, and the proof."""

    session: StoredSession
    before: HistoryView
    after: HistoryView
    outcome: CompactionOutcome
    left_blocks: LeftBlocks
    proofs: list[RecallProof]
    verdict: VerificationReport
    compaction_seconds: float
    """Seconds, including the summary."""

    @property
    def has_passed(self) -> bool:
        return self.verdict.is_ok and all(proof.is_original for proof in self.proofs)

    @property
    def cited_handles(self) -> Ranges:
        """The handles of removed blocks that the summary names."""
        return self.after.summary.cites if self.after.summary else Ranges()


def run_tour(
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
    after = session.view()
    cited = after.summary.cites if after.summary else Ranges()
    left = LeftBlocks(entry for entry in before.entries if entry.position in outcome.left)
    proofs = [left.prove_recall(session, one.position) for one in left.choose_recalls(cited)]
    verdict = verify(store, session)
    return Tour(session, before, after, outcome, left, proofs, verdict, seconds)


def tour_to_json(tour: Tour | None) -> dict[str, Any]:
    """Return a tour as `demo --json` prints it; all values are null without a tour."""
    if tour is None:
        names = ("session", "before", "after", "compaction", "left", "recalled", "verify")
        return dict.fromkeys(names)
    return {
        "session": tour.session.key,
        "before": {"tokens": tour.before.tokens, "blocks": len(tour.before.entries)},
        "after": {"tokens": tour.after.tokens, "blocks": len(tour.after.entries)},
        "compaction": cli_compacting.outcome_to_json(tour.outcome, tour.after.coordinate.lineage),
        "left": {
            "handles": list_handle_ranges(tour.left_blocks.handles),
            "kinds": {
                share.kind.value: {"blocks": share.blocks, "tokens": share.tokens}
                for share in tour.left_blocks.count_shares()
            },
            "largest": [
                {
                    "handle": f"#{one.position}",
                    "kind": one.block.kind.value,
                    "tokens": estimate_block(one.block),
                }
                for one in tour.left_blocks.find_largest(5)
            ],
        },
        "recalled": [
            {
                "handle": proof.recalled.handle,
                "kind": proof.recalled.block.kind.value,
                "bytes": proof.size,
                "sha256": proof.sha256,
                "original": proof.is_original,
            }
            for proof in tour.proofs
        ],
        "verify": cli_verify.verdict_to_json(tour.verdict),
    }
