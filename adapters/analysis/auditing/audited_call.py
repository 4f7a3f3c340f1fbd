"""Rebuilds from the log what one call was sent, and checks whether that is proved."""

from dataclasses import dataclass

from ....domain.errors import InvalidPositionError, NotFoundError
from ....domain.ranges import Ranges
from ....domain.session_events import ModelCalled
from ....domain.token_estimate import PromptSize, SizeBasis
from ....projections.audit_entries import SentView
from ....projections.history_view import HistoryView
from ....projections.rendering.catalog import RENDERERS_BY_LABEL, render_view
from ....projections.rendering.sendable import JsonObject
from ....projections.replay.recorded_calls import RecordedCall
from ...runtime.sessions.stored_session import StoredSession
from ...storage.event_log.storage_errors import translate_storage_errors
from ..replaying.recordings import read_calls
from .sent_views import SentViews


@dataclass(frozen=True)
class AuditedCall:
    """One call of a model, and what it was sent."""

    number: int | None
    """The number, from 1 on; None if the call was looked up by the handle of its record."""
    last_seen_position: int
    """The newest position that the model could see."""
    answer: tuple[int, ...]
    """Positions of the blocks that it wrote; empty if looked up by the handle of its record."""
    reported: ModelCalled | None
    """The record of the call; None if the source has only the answer."""
    shown: SentView
    view: HistoryView | None
    """What the model was sent; None if that cannot be rebuilt."""

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


def audit_call(
    session: StoredSession, number: int | None = None, *, at: int | None = None
) -> AuditedCall:
    """Return what one call of a model was sent: rebuilt, and proved by its fingerprint.

    `number` counts calls from 1 on, as `audit` and replays do; `at` is the position of the call's
    record, or of a block of its answer. `shown.proof` tells whether the view is what was sent,
    `request()` returns the body. Raises NotFoundError if there is no such call, and
    InvalidPositionError if `at` names none.
    """
    with translate_storage_errors(session.log.context.name):
        if at is not None:
            return _find_call_at(session, at)
        if number is None:
            raise InvalidPositionError("no call was named: give its number, or a handle with `at`")
        calls = read_calls(session)
        if not calls:
            raise NotFoundError(f"session {session.key!r} tells of no call of a model")
        if not 1 <= number <= len(calls):
            raise NotFoundError(
                f"session {session.key!r} has no call {number}: they go from 1 to {len(calls)}"
            )
        return _audit_call(session, calls[number - 1])


def measure_call(reported: ModelCalled | None, estimated: int) -> PromptSize:
    """Return the size of a call's prompt: as reported, else the estimate of its view."""
    if reported is not None and reported.context:
        return PromptSize(reported.context, SizeBasis.REPORTED)
    return PromptSize(estimated, SizeBasis.ESTIMATED)


def _find_call_at(session: StoredSession, position: int) -> AuditedCall:
    events = session.log.events
    chain = events.find_session_chain(session.namespace, session.key)
    head = events.read_head(chain)[0]
    if not 1 <= position <= head:
        raise InvalidPositionError(f"#{position} does not exist: the session ends at #{head}")
    event = events.read(chain, Ranges.of([position]))[0].event
    if isinstance(event, ModelCalled):
        return _audit_call(session, RecordedCall(0, event.position, (), event))
    for call in read_calls(session):
        if position in call.answer:
            return _audit_call(session, call)
    raise InvalidPositionError(
        f"#{position} is neither a model's answer nor the record of a call of one"
    )


def _audit_call(session: StoredSession, call: RecordedCall) -> AuditedCall:
    views = SentViews(session.log.events, session.namespace, session.key)
    entry = views.describe(call)
    return AuditedCall(
        call.number or None,
        call.last_seen_position,
        call.answer,
        call.report,
        entry.sent_view,
        views.find_view(entry),
    )
