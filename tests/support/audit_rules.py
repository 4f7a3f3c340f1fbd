"""What must hold of every audit: it adds up, counts as replays count, and fates are the views'."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import cutbank
from cutbank import Audit, NotFoundError, Ranges, StoredSession
from cutbank.adapters.analysis.run_replay import read_recording
from cutbank.domain.session_events import RecordEvent
from cutbank.projections.audit_entries import (
    AuditedBlock,
    AuditedCall,
    AuditedDecision,
    AuditedEvent,
    RequestProof,
)
from cutbank.projections.block_statuses import ViewEpoch, compute_status_ranges, find_status
from cutbank.projections.rendering.catalog import render_view

Sent = dict[tuple[str, str], tuple[str, bytes]]
"""The session and the name of a call to the format and the bytes that were sent."""


def find_era(epochs: Sequence[ViewEpoch], position: int) -> ViewEpoch:
    return [epoch for epoch in epochs if epoch.start <= position][-1]


def sent_as(view: cutbank.HistoryView, form: str) -> bytes:
    return json.dumps(render_view(view, form)).encode()


def list_record_positions(session: StoredSession) -> list[int]:
    events, everything = session.log.events, Ranges.span(1, session.position)
    found = events.read(session.log.chain(), everything, with_records=True)
    return [one.position for one in found if isinstance(one.event, RecordEvent)]


def check_sum(session: StoredSession, audit: Audit) -> None:
    positions, versions, numbers = list[int](), list[int](), list[int]()
    for happening in audit.read_between():
        match happening:
            case AuditedBlock(position=position) | AuditedEvent(position=position):
                positions.append(position)
            case AuditedCall(number=number):
                numbers.append(number or 0)
                positions += [happening.reported.originator_version] if happening.reported else []
            case AuditedDecision(version=version):
                versions.append(version)
    positions += list_record_positions(session)  # no part of a conversation
    assert sorted(positions) == list(range(1, session.position + 1))
    assert versions == list(range(1, audit.coordinate.lineage_version + 1))
    assert numbers == list(range(1, len(read_recording(session).calls) + 1))


def check_calls(session: StoredSession, audit: Audit, sent: Sent) -> None:
    replayed = read_recording(session).calls
    asked = [one for one in audit.read_between() if isinstance(one, AuditedCall)]
    assert [(call.number, call.last_seen_position, call.answer) for call in replayed] == [
        (one.number, one.last_seen_position, one.answer) for one in asked
    ]
    for one in asked:
        call = cutbank.audit_call(session, one.number)
        assert call.shown == one.shown
        reported = call.reported
        assert reported == one.reported
        if reported is None or reported.fingerprint is None:
            assert call.shown.proof is RequestProof.RECONSTRUCTED
            continue
        assert (call.shown.proof, call.shown.why) == (RequestProof.PROVED, None)
        assert call.shown.fingerprint == reported.fingerprint
        again = cutbank.audit_call(session, at=reported.originator_version)
        assert (again.shown, again.view, again.number) == (call.shown, call.view, None)
        for key, name in sent:
            # What a fork inherits was sent under its parent's name.
            if name == reported.call_id:
                form, body = sent[key, name]
                assert json.dumps(call.request()).encode() == body
                assert (call.render_format, call.is_exact) == (form, True)


def check_fates(session: StoredSession, audit: Audit) -> None:
    """At every coordinate each block has the one fate that the view there gives it."""
    for position in range(1, session.position + 1):
        view = session.view(at=position)
        era = find_era(audit.view_epochs, position)
        assert (era.boundary, era.summary) == (view.boundary, view.summary)
    blocks = Ranges.of(b.position for b in audit.read_between() if isinstance(b, AuditedBlock))
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
    audit = cutbank.audit(session, at=at, lineage_version=version)
    position = view.coordinate.position
    retracted = Ranges()
    for one in audit.retractions:
        retracted |= one.positions
    fates = compute_status_ranges(view.boundary, view.summary, retracted, position)
    for block in blocks & Ranges.span(1, position):
        became = audit.block_statuses.find(block)
        assert became.status is find_status(fates, block)
        assert became.status is not None
        check_since(audit, block, became.since)


def check_since(audit: Audit, block: int, since: int | None) -> None:
    """It has been so since then, without a break, and was not before."""
    now = fate_at(audit, block, audit.position)
    points = {era.start for era in audit.view_epochs} | {
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
    era = find_era(audit.view_epochs, position)
    fates = compute_status_ranges(era.boundary, era.summary, retracted, position)
    return find_status(fates, block)
