"""Defines the entries of an audit: blocks, calls with their proof, decisions, and other events."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ..domain.blocks import AnyBlock
from ..domain.compaction import RECORDED_LINEAGE
from ..domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionFailed,
    CompactionRequested,
    CompactionReverted,
)
from ..domain.event import Event, parse_source_time
from ..domain.session_events import Ends, ModelCalled
from ..domain.token_estimate import PromptSize, SizeBasis
from .block_statuses import StatusSince
from .history_view import HistoryView
from .recording import RecordedCall
from .rendering.catalog import RENDERERS_BY_LABEL, render_view
from .rendering.sendable import JsonObject
from .timestamps import get_event_block


class RequestProof(StrEnum):
    """The evidence that a model was sent the view that the record of its call names."""

    PROVED = "proved"
    """Rebuilt, it has the recorded fingerprint, and no content of it was changed."""
    NOT_EQUAL = "not equal"
    """It was recorded with a fingerprint, but the rebuilt view has another."""
    RECONSTRUCTED = "reconstructed"
    """The request was not recorded; this is the view at the place of the call."""
    NOT_PROVABLE = "not provable"
    """The recorded coordinate does not exist."""


REFUTED_PROOFS = frozenset({RequestProof.NOT_EQUAL, RequestProof.NOT_PROVABLE})
"""The log contradicts the record of the call."""


@dataclass(frozen=True, slots=True)
class SentView:
    """What a call was sent, as far as the log shows."""

    proof: RequestProof
    why: str | None = None
    """The contradiction; None if there is none."""
    boundary: int | None = None
    blocks: int = 0
    tokens: int = 0
    """Estimated tokens of the view."""
    fingerprint: str | None = None

    @property
    def is_refuted(self) -> bool:
        return self.proof in REFUTED_PROOFS


@dataclass(frozen=True, slots=True)
class AuditedBlock:
    """A block and its status."""

    position: int
    turn: int
    block: AnyBlock
    tokens: int
    time: datetime | None
    """When it was written; None if an imported source has no time."""
    status: StatusSince
    is_open: bool = False
    """Whether it is a tool call without an answer."""
    ends: Ends | None = None
    """The part that views show of a result too large for any of them."""


@dataclass(frozen=True)
class AuditedCall:
    """A call of a model, placed right after the last block that it saw."""

    call: RecordedCall
    reported: ModelCalled | None
    """The record of the call; None if the source has only the answer."""
    lineage: str
    shown: SentView
    view: HistoryView | None = None
    """What the model was sent; None if that cannot be rebuilt, and in a list of calls."""

    @property
    def number(self) -> int | None:
        """The number, from 1 on; None if the call was looked up by the handle of its record."""
        return self.call.number or None

    @property
    def last_seen_position(self) -> int:
        """The newest position that the model could see."""
        return self.call.last_seen_position

    @property
    def answer(self) -> tuple[int, ...]:
        """Positions of the blocks that it wrote; empty if looked up by the handle of its record."""
        return self.call.answer

    @property
    def lineage_version(self) -> int | None:
        """The version of what it was sent; None if none was recorded, which means the newest."""
        return self.reported.lineage_version if self.reported else None

    @property
    def size(self) -> PromptSize:
        """The size of its prompt: as reported, else the estimate of its view."""
        if self.reported is not None and self.reported.context:
            return PromptSize(self.reported.context, SizeBasis.REPORTED)
        return PromptSize(self.shown.tokens, SizeBasis.ESTIMATED)

    @property
    def request_format(self) -> str | None:
        """The format that it was sent in, such as `anthropic/1`; None if that was not recorded."""
        return self.reported.renderer if self.reported else None

    @property
    def is_exact(self) -> bool:
        """Whether `request()` returns exactly the bytes that were sent."""
        return self.request_format in RENDERERS_BY_LABEL

    @property
    def render_format(self) -> str:
        """The format that `request()` uses: the recorded one, else `neutral`."""
        return (self.request_format or "").partition("/")[0] if self.is_exact else "neutral"

    def request(self, form: str | None = None) -> JsonObject | None:
        """Return the body of the request, in another format if one is given."""
        if self.view is None:
            return None
        if form in {None, self.render_format} and self.request_format in RENDERERS_BY_LABEL:
            form = self.request_format
        return render_view(self.view, form or self.render_format)


@dataclass(frozen=True, slots=True)
class AuditedEvent:
    """Any other event of the session."""

    position: int
    event: Event
    is_superseded: bool = False
    """Whether it records a call that was recorded again later; the last one counts."""


@dataclass(frozen=True, slots=True)
class AuditedDecision:
    """A decision on the lineage, or an event that leads to one."""

    version: int
    position: int
    """The session's position at that time."""
    event: Event


AuditEntry = AuditedBlock | AuditedCall | AuditedEvent | AuditedDecision


def place_decisions(decisions: Iterable[Event], position: int) -> Iterator[AuditedDecision]:
    """Yield each decision with the session's position at that time, as far as the event says.

    Clocks never order streams: an event without a position is placed with the one before it. No
    position exceeds `position`, where the audit ends.
    """
    place = 1
    for event in decisions:
        match event:
            case (
                CompactionRequested(after=at)
                | CompactBoundary(after=at)
                | CompactionFailed(after=at)
                | BoundaryActivated(effective_from=at)
                | CompactionReverted(effective_from=at)
            ):
                place = min(max(place, at), position)
            case _:
                pass
        yield AuditedDecision(event.originator_version, place, event)


def find_source_time(event: Event) -> datetime | None:
    """Return the time of an event, for an imported one by the clock of its source.

    Return None if only the time of its import is known.
    """
    match event:
        case CompactBoundary(source_time=time) | ModelCalled(source_time=time) if time:
            return parse_source_time(time)
        case ModelCalled(lineage=lineage) if lineage == RECORDED_LINEAGE:
            return None
        case _:
            block = get_event_block(event)
            if block is None or block.origin is None:
                return event.timestamp
            return parse_source_time(block.origin.time) if block.origin.time else None
