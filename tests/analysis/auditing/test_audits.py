"""Audits of any session add up, prove what was served, and tell times by the source's clock."""

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from audit_rules import Sent, check_calls, check_fates, check_sum, sent_as
from clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from the_invariants import TheInvariants
from transcripts import import_file, samples

import cutbank
from cutbank import Block, SessionStore, StoredSession
from cutbank.adapters.analysis.run_replay import read_calls, read_recording
from cutbank.domain.blocks import Origin
from cutbank.projections.audit_entries import (
    AuditedBlock,
    AuditedCall,
    find_source_time,
)
from cutbank.projections.rendering.catalog import RENDERERS

IMPORTED = datetime(2099, 1, 1, tzinfo=UTC)
"""No source tells of so late a time."""


class TheAudit(TheInvariants):
    """Agents, users and compactions at work; a recorder notes what models are sent."""

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
        folder = Path(tempfile.mkdtemp(prefix="cutbank-audit-"))
        try:
            self._check(self.store)
            self.store.backup(folder / "copy.db")
            with cutbank.open(folder / "copy.db") as copy:
                self._check(copy)
        finally:
            shutil.rmtree(folder)
            super().teardown()

    def _check(self, store: SessionStore) -> None:
        for key in self.models:
            session = store.session(key, create=False)
            audit = cutbank.audit(session)
            check_sum(session, audit)
            check_calls(session, audit, self.sent)
            check_fates(session, audit)


def test_audits_add_up_and_served_calls_are_proved_whatever_is_done() -> None:
    run_state_machine_as_test(
        TheAudit, settings=settings(max_examples=5, stateful_step_count=30, deadline=None)
    )


def test_what_was_imported_has_the_views_of_its_coordinates_and_no_time_of_the_import(
    tmp_path: Path,
) -> None:
    with cutbank.open(tmp_path / "x.db", clock=lambda: IMPORTED) as store:
        for number, path in enumerate(samples()):
            import_file(store, path, namespace=str(number))

        for session in store.sessions():
            for one in cutbank.audit(session).read_between():
                time = None
                if isinstance(one, AuditedBlock) and one.block.origin is not None:
                    time = one.time
                elif isinstance(one, AuditedCall):
                    time = find_source_time(one.reported) if one.reported else None
                    view = session.view(
                        lineage=one.lineage,
                        at=one.last_seen_position,
                        lineage_version=one.lineage_version,
                    )
                    shown = one.shown
                    assert shown.blocks == len(view.entries), session
                    assert (shown.tokens, shown.fingerprint) == (view.tokens, view.fingerprint)
                assert time is None or time < IMPORTED, session


def of_source(time: str | None) -> Origin:
    return Origin(format="pi", time=time)


DATED: list[tuple[Block, int | None]] = [
    (Block.user("hi"), 2026),
    (Block.user("hi", origin=of_source("2020-05-01T00:00:00Z")), 2020),
    (Block.user("hi", origin=of_source("1600000000.5")), 2020),
    (Block.user("hi", origin=of_source("1600000000500")), 2020),
    (Block.user("hi", origin=of_source("yesterday")), None),
    (Block.user("hi", origin=of_source("0001-01-01T00:00:00+14:00")), None),
    (Block.user("hi", origin=of_source(None)), None),
    (Block.note('{"timestamp": "2020-05-01"}', origin=of_source(None)), None),
]


def audited(*blocks: Block) -> list[AuditedBlock]:
    with cutbank.open(":memory:", clock=Clock()) as store:
        session = store.session("s")
        session.append(*blocks)
        entries = cutbank.audit(session).read_between()
        return [one for one in entries if isinstance(one, AuditedBlock)]


def test_what_its_source_dates_has_that_date_and_what_nobody_dates_has_none() -> None:
    told = audited(*(block for block, _ in DATED))

    assert [(one.block, one.time.year if one.time else None) for one in told] == DATED


@given(st.text(), st.text() | st.none())
def test_whatever_a_source_writes_is_a_time_or_none(text: str, time: str | None) -> None:
    (said,) = audited(Block.note(text, origin=of_source(time)))

    assert said.time is None or said.time.tzinfo is UTC


def test_calls_are_counted_as_replays_count_them_whenever_it_is(session: StoredSession) -> None:
    fork = session
    for number in range(3):
        session.append(Block.user("?"), Block.assistant("!"), Block.assistant("!", message_id="m"))
        session.append(Block.developer("? \ud83d"), Block.assistant("!", message_id="m"))
        session.record_call(session.view(at=2), call_id=f"late {number % 2}")
        fork.append(Block.assistant("so"), Block.assistant("and so"))
        for one in (session, fork):
            assert read_calls(one) == read_recording(one).calls
            assert read_calls(one) is read_calls(one)
        fork = session.fork(f"fork {number}")
    answers = [call.answer for call in read_calls(session) if call.answer]
    assert answers[:2] == [(4,), (5, 7)]
