"""One compaction and the proof that it lost nothing: what the demo does, and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ....domain.errors import NothingToCompactError
from ....domain.ranges import Ranges
from ....domain.token_budget import estimate
from ....projections.history_view import HistoryView
from ...analysis.verifier import verify
from ...runtime.compaction.outcome import Outcome
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ...transcripts.reports import Verdict
from . import cli_compacting, cli_keeping
from .printing import runs
from .what_left import Proof, WhatLeft

TRIED = 5
"""How many of the largest sessions are tried before all are called too small."""


@dataclass(frozen=True, slots=True)
class Tour:
    """A session before and after it was compacted, and what was proved of it."""

    session: StoredSession
    before: HistoryView
    after: HistoryView
    outcome: Outcome
    left: WhatLeft
    proofs: list[Proof]
    verdict: Verdict
    compacted_in: float
    """Seconds, the summary included."""

    @property
    def is_well(self) -> bool:
        return self.verdict.ok and all(proof.is_original for proof in self.proofs)

    @property
    def cited(self) -> Ranges:
        """What the summary names of all that left."""
        return self.after.summary.cites if self.after.summary else Ranges()


def toured(
    store: SessionStore, sessions: Sequence[StoredSession]
) -> tuple[Tour | None, dict[str, str]]:
    """A tour of the largest view that can be compacted, and why those before it cannot."""
    reasons: dict[str, str] = {}
    # Of a log that was compacted while it was made, little may be in the view.
    views = [(session, session.view()) for session in sessions[:TRIED]]
    for session, before in sorted(views, key=lambda pair: -pair[1].tokens):
        began = perf_counter()
        try:
            outcome = session.compact()
        except NothingToCompactError as error:
            since = before.boundary and "since the last compaction "
            reasons[session.key] = f"{since or ''}{error}"
            continue
        if outcome.compacted:
            return _tour(store, session, before, outcome, perf_counter() - began), reasons
        reasons[session.key] = outcome.reason
    return None, reasons


def _tour(
    store: SessionStore,
    session: StoredSession,
    before: HistoryView,
    outcome: Outcome,
    seconds: float,
) -> Tour:
    after = session.view()
    cited = after.summary.cites if after.summary else Ranges()
    left = WhatLeft(entry for entry in before.entries if entry.position in outcome.left)
    proofs = [left.proof(session, one.position) for one in left.worth_recalling(cited)]
    verdict = verify(store, session)
    return Tour(session, before, after, outcome, left, proofs, verdict, seconds)


def as_json(tour: Tour | None) -> dict[str, Any]:
    """What `demo --json` says of a tour; all null where there was none."""
    if tour is None:
        names = ("session", "before", "after", "compaction", "left", "recalled", "verify")
        return dict.fromkeys(names)
    return {
        "session": tour.session.key,
        "before": {"tokens": tour.before.tokens, "blocks": len(tour.before.entries)},
        "after": {"tokens": tour.after.tokens, "blocks": len(tour.after.entries)},
        "compaction": cli_compacting.as_json(tour.outcome, tour.after.coordinate.lineage),
        "left": {
            "handles": runs(tour.left.handles),
            "kinds": {
                share.kind.value: {"blocks": share.blocks, "tokens": share.tokens}
                for share in tour.left.shares()
            },
            "largest": [
                {
                    "handle": f"#{one.position}",
                    "kind": one.block.kind.value,
                    "tokens": estimate(one.block),
                }
                for one in tour.left.largest(5)
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
        "verify": cli_keeping.as_json(tour.verdict),
    }
