"""Whatever is done to a session: its audit adds up, and every call that was served is proved."""

import shutil
import tempfile
from pathlib import Path

from audit_rules import Sent, check_calls, check_fates, check_sum, sent_as
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from the_invariants import TheInvariants

import cutbank
from cutbank import SessionStore
from cutbank.projections.rendering.catalog import RENDERERS


class TheAudit(TheInvariants):
    """Agents, people and compactions at work, and somebody who writes down what models are sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: Sent = {}

    @rule(
        key=st.sampled_from(["s0", "s1"]),
        form=st.sampled_from(sorted(RENDERERS)),
        late=st.booleans(),
    )
    def a_call_is_served(self, key: str, form: str, *, late: bool) -> None:
        """A call, whose record may come behind its answer."""
        if (model := self.models.get(key)) is None:
            return
        self.counter += 1
        name = f"served {self.counter}"
        view = model.session.view()
        self.sent[key, name] = form, sent_as(view, form)
        if late:
            self.the_model_answers(key, "yes", 20, 1, thinks=False)
        model.session.record_call(view, call_id=name, renderer=RENDERERS[form].label)

    def teardown(self) -> None:
        try:
            self._check(self.store)
            self._check_a_backup()
        finally:
            super().teardown()

    def _check(self, store: SessionStore) -> None:
        for key in self.models:
            session = store.session(key, create=False)
            audit = cutbank.audit(session)
            check_sum(session, audit)
            check_calls(session, audit, self.sent)
            check_fates(session, audit)

    def _check_a_backup(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="cutbank-audit-"))
        try:
            self.store.backup(folder / "copy.db")
            with cutbank.open(folder / "copy.db") as copy:
                self._check(copy)
        finally:
            shutil.rmtree(folder)


def test_audits_add_up_and_served_calls_are_proved_whatever_is_done() -> None:
    run_state_machine_as_test(
        TheAudit, settings=settings(max_examples=8, stateful_step_count=30, deadline=None)
    )
