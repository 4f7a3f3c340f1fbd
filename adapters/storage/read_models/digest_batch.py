"""Builds one batch of the digest: what calls touched, and their outcomes."""

from typing import cast

from ....domain.blocks import AnyBlock, Kind
from ....domain.ranges import Ranges
from ....domain.session_events import ToolReturned
from ....projections.read_models.digest_entries import iter_digest_entries
from ..event_log.event_mapper import EventMapper, load_json
from ..event_log.stored_row import LogNotification
from .row_batch import RowBatch
from .touched_streams import TouchedSession

_MAX_TEXT_CHARACTERS = 1_000
"""The longest command or path, in characters."""


class DigestBatch:
    def __init__(self, rows: RowBatch, mapper: EventMapper) -> None:
        self.rows = rows
        self.mapper = mapper

    def add_block(self, touched: TouchedSession, position: int, turn: int, block: AnyBlock) -> None:
        for kind, what in iter_digest_entries(block):
            entry = self.rows.add(
                "digest_entries",
                session_id=touched.row.id,
                position=position,
                turn=turn,
                kind=kind,
                what=what[:_MAX_TEXT_CHARACTERS],
                tool=getattr(block, "name", None) if block.kind is Kind.TOOL_CALL else None,
                outcome=None,
                retracted=0,
            )
            touched.entries.setdefault(position, []).append(entry)

    def add_answer(self, touched: TouchedSession, row: LogNotification, plaintext: bytes) -> None:
        if b'"class_version"' in plaintext:
            event = cast(ToolReturned, self.mapper.to_domain_event(row))
            call, is_error = event.call, event.block.is_error
        else:
            state = load_json(plaintext)
            call, is_error = state["call"], state["block"].get("is_error", False)
        self.end_call(touched, call, "error" if is_error else "ok")

    def end_call(self, touched: TouchedSession, call: int, outcome: str | None) -> None:
        if call >= touched.first:
            for entry in touched.entries.get(call, ()):
                entry["outcome"] = outcome
        # A fork's answer to its parent's call does not change the parent.
        elif touched.row.forked_at is None or call > touched.row.forked_at:
            self.rows.change(
                "UPDATE digest_entries SET outcome = ? WHERE session_id = ? AND position = ?",
                (outcome, touched.row.id, call),
            )

    def retract(self, touched: TouchedSession, positions: Ranges) -> None:
        for first, last in positions.runs:
            self.rows.change(
                "UPDATE digest_entries SET retracted = 1"
                " WHERE session_id = ? AND position BETWEEN ? AND ?",
                (touched.row.id, first, last),
            )
