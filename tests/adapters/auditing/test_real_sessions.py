"""Audits of real sessions add up, whatever wrote them."""

from pathlib import Path

import pytest
from audit_rules import check_calls, check_sum
from transcripts import NO_SESSIONS, import_file, name_of, real

from cutbank import SessionStore
from cutbank.projections.audit.audit_entries import ModelAsked
from cutbank.projections.audit.sent_view import Proof

SEVERAL = 12
"""Transcripts that are imported and audited: the smallest, and so many more of the folder."""


def some_of_them() -> list[Path]:
    """Evenly from small ones to large ones, but for the largest tenth."""
    sized = sorted(real(), key=lambda path: (path.stat().st_size if path.is_file() else 0, path))
    chosen = sized[: len(sized) * 9 // 10]
    return chosen[:: max(1, len(chosen) // SEVERAL)]


@pytest.mark.skipif(not real(), reason=NO_SESSIONS)
@pytest.mark.parametrize("path", some_of_them(), ids=name_of)
@pytest.mark.parametrize("engine", ["sqlite"])
def test_an_audit_of_a_real_session_adds_up_and_claims_no_proof(
    store: SessionStore, path: Path, engine: str
) -> None:
    import_file(store, path)

    for session in store.sessions():
        audit = session.audit()
        check_sum(session, audit)
        check_calls(session, audit, {})
        asked = [one for one in audit.between() if isinstance(one, ModelAsked)]
        assert {one.shown.proof for one in asked} <= {Proof.RECONSTRUCTED}
