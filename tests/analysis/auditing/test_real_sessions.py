"""Audits of real sessions add up, whatever wrote them."""

from pathlib import Path

import pytest
from audit_rules import check_calls, check_sum
from transcripts import NO_SESSIONS, import_file, real

import cutbank
from cutbank import SessionStore
from cutbank.projections.audit_entries import ModelCallEntry, RequestProof

SEVERAL = 3
"""Transcripts that are imported and audited: the smallest, and so many more of the folder."""


def some_of_them() -> list[Path]:
    """Evenly from the smaller third."""
    sized = sorted(real(), key=lambda path: (path.stat().st_size if path.is_file() else 0, path))
    chosen = sized[: len(sized) // 3]
    return chosen[:: max(1, len(chosen) // SEVERAL)]


@pytest.mark.skipif(not real(), reason=NO_SESSIONS)
def test_an_audit_of_a_real_session_adds_up_and_claims_no_proof(store: SessionStore) -> None:
    for number, path in enumerate(some_of_them()):
        import_file(store, path, namespace=str(number))
    sessions = store.sessions()
    assert len(sessions) >= SEVERAL

    for session in sessions:
        audit = cutbank.audit(session)
        check_sum(session, audit)
        check_calls(session, audit, {})
        asked = [one for one in audit.read_between() if isinstance(one, ModelCallEntry)]
        assert {one.sent_view.proof for one in asked} <= {RequestProof.RECONSTRUCTED}
