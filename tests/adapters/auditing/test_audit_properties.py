"""Whatever is done to a session: its audit adds up, and every call that was served is proved."""

import json
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from test_invariants import TheInvariants

import cutbank
from cutbank import SessionStore, StoredSession
from cutbank.adapters.auditing.audit import Audit
from cutbank.adapters.replaying.recordings import recording_of
from cutbank.domain.coverage import Fates
from cutbank.domain.errors import NotFoundError
from cutbank.domain.ranges import Ranges
from cutbank.projections.audit.eras import era_at
from cutbank.projections.audit.happenings import BlockSaid, Decided, ModelAsked, Recorded
from cutbank.projections.audit.shown import Proof
from cutbank.projections.rendering.catalog import RENDERERS, render

Sent = dict[tuple[str, str], tuple[str, bytes]]
"""The session and the name of a call to the format and the bytes that were sent."""


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
            audit = session.audit()
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


def sent_as(view: cutbank.HistoryView, form: str) -> bytes:
    """The very bytes of a request's body."""
    return json.dumps(render(view, form)).encode()


def check_sum(session: StoredSession, audit: Audit) -> None:
    """No event of the log or of the lineage is missing, and none is told twice."""
    positions, versions, numbers = list[int](), list[int](), list[int]()
    for happening in audit.between():
        match happening:
            case BlockSaid(position=position) | Recorded(position=position):
                positions.append(position)
            case ModelAsked(number=number):
                numbers.append(number)
                positions += [happening.recorded] if happening.recorded else []
            case Decided(version=version):
                versions.append(version)
    assert sorted(positions) == list(range(1, session.position + 1))
    assert versions == list(range(1, audit.coordinate.lineage_version + 1))
    assert numbers == list(range(1, len(recording_of(session).calls) + 1))


def check_calls(session: StoredSession, audit: Audit, sent: Sent) -> None:
    """Calls are counted as replays count, and those that were served are proved."""
    replayed = recording_of(session).calls
    asked = [one for one in audit.between() if isinstance(one, ModelAsked)]
    assert [(call.number, call.sees, call.answer) for call in replayed] == [
        (one.number, one.placed.sees, one.placed.answer) for one in asked
    ]
    for one in asked:
        call = session.audited_call(one.number)
        assert call.shown == one.shown
        reported = call.reported
        assert reported == one.reported
        if reported is None or reported.fingerprint is None:
            assert call.shown.proof is Proof.RECONSTRUCTED
            continue
        assert (call.shown.proof, call.shown.why) == (Proof.PROVED, None)
        assert call.shown.fingerprint == reported.fingerprint
        again = session.audited_call(at=reported.originator_version)
        assert (again.shown, again.view, again.number) == (call.shown, call.view, None)
        for key, name in sent:
            # What a fork inherits was sent under its parent's name.
            if name == reported.call_id:
                form, body = sent[key, name]
                assert json.dumps(call.request()).encode() == body
                assert (call.form, call.is_as_sent) == (form, True)


def check_fates(session: StoredSession, audit: Audit) -> None:
    """At every coordinate each block has the one fate that the view there gives it."""
    for position in range(1, session.position + 1):
        view = session.view(at=position)
        era = era_at(audit.eras, position)
        assert (era.boundary, era.summary) == (view.boundary, view.summary)
    blocks = Ranges.of(b.position for b in audit.between() if isinstance(b, BlockSaid))
    halfway = max(1, session.position // 2)
    for at, version in [
        (None, None),
        (halfway, None),
        (None, audit.coordinate.lineage_version // 2),
    ]:
        # Before it was written to, a lineage has other versions.
        with suppress(NotFoundError):
            check_fates_at(session, blocks, at, version)


def check_fates_at(
    session: StoredSession, blocks: Ranges, at: int | None, version: int | None
) -> None:
    view = session.view(at=at, lineage_version=version)
    audit = session.audit(at=at, lineage_version=version)
    position = view.coordinate.position
    retracted = Ranges()
    for one in audit.retractions:
        retracted |= one.positions
    fates = Fates(view.boundary, view.summary, retracted)
    for block in blocks & Ranges.span(1, position):
        became = audit.fates.of(block)
        assert became.fate is fates.of(block)
        assert became.fate is not None
        check_since(audit, block, became.since)


def check_since(audit: Audit, block: int, since: int | None) -> None:
    """It has been so since then, without a break, and was not before."""
    now = fate_at(audit, block, audit.position)
    points = {era.start for era in audit.eras} | {
        one.originator_version for one in audit.retractions
    }
    begins = since or block
    for point in sorted(points):
        if point >= begins:
            assert fate_at(audit, block, point) is now
    # A boundary may be drawn right behind a block: then there was never another view of it.
    if since is not None and since != block:
        assert since > block
        assert fate_at(audit, block, since - 1) is not now


def fate_at(audit: Audit, block: int, position: int) -> Any:
    retracted = Ranges()
    for one in audit.retractions:
        if one.originator_version <= position:
            retracted |= one.positions
    era = era_at(audit.eras, position)
    return Fates(era.boundary, era.summary, retracted).of(block)


def on(engine: str, request: pytest.FixtureRequest) -> type[TheAudit]:
    """The machine for one of the databases."""
    if engine == "sqlite":
        return TheAudit
    server = request.getfixturevalue("postgres")
    return type("TheAuditOnPostgres", (TheAudit,), {"server": server})


def test_audits_add_up_and_served_calls_are_proved_whatever_is_done(
    engine: str, request: pytest.FixtureRequest
) -> None:
    run_state_machine_as_test(
        on(engine, request),
        settings=settings(
            max_examples=25 if engine == "sqlite" else 8, stateful_step_count=30, deadline=None
        ),
    )
