"""Finds the sessions that are due, and makes one attempt to compact one of them."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ....domain.compaction_events import Trigger
from ....domain.errors import (
    CompactionCancelledError,
    CutbankError,
    InvalidSettingError,
    LeaseHeldError,
    LeaseLostError,
    NotFoundError,
    NothingToCompactError,
    StalePlanError,
    StorageError,
)
from ....domain.idle_rules import SPEND_WINDOW, IdleRules
from ....projections.session_row import PASSED_OVER, SessionRow
from ....projections.timestamps import format_timestamp
from ...storage.earlier_calls import read_logged_context
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.read_models.read_models import ReadModels
from ..compaction.background import Cancellation
from ..compaction.from_settings import make_compaction_request
from ..compaction.options import CompactionRequest
from ..compaction.outcome import CompactionOutcome
from ..compaction.summary_chain import SummaryChain
from ..sessions.session_store import SessionStore
from .notices import NoticeKind

logger = logging.getLogger("cutbank.idle")

CACHE_LIFE = timedelta(hours=1)
"""The longest that any provider caches a prompt between uses."""
BUSY_PAUSE = timedelta(seconds=30)
"""How long to leave a session alone if another process has it, or if it cannot be stored."""
MISCONFIGURED_PAUSE = timedelta(minutes=10)
"""How long to leave a session alone if its settings cannot be met."""


class DueSession(NamedTuple):
    due_at: datetime
    id: int
    namespace: str
    key: str
    position: int
    """The session's newest position when it was found due."""
    lineage_version: int
    """The lineage's version when it was found due."""
    attempts: int
    """The number of failed attempts since the last block."""
    last_activity: datetime
    in_use: int
    """The tokens of context, as far as the index knows."""


_COLUMNS = (
    *("id", "stream", "namespace", "key", "position", "served_version", "in_use"),
    *("context_limit", "attempts", "last_activity", "leased_until", "wake_at", "failed_at"),
)
"""What names a session, and what its due time depends on."""
_CANDIDATES = (
    f"SELECT {', '.join(_COLUMNS)} FROM sessions"  # noqa: S608 - our names
    " WHERE settled = 0 AND open_calls = 0 AND closed = 0 AND parent_key IS NULL"
)
_ROUNDING = 0.000_1
"""A share is rounded before it is compared."""


class DueSessionIndex:
    """Queries the index; each answer is as of its last catch-up with the log."""

    def __init__(self, models: ReadModels, rules: IdleRules, limit: int = 0) -> None:
        """`limit` is the limit of all sessions; 0 if each has its own."""
        self.models = models
        self.rules = rules
        self.limit = limit

    def find_waiting(self) -> list[DueSession]:
        """Return all sessions that are due now or will be by time alone, longest waiting first."""
        size, least = "utilisation", self.rules.least_utilization
        if self.limit:
            size, least = "in_use", (least - _ROUNDING) * self.limit
        waiting = []
        for found in self.models.file.fetch_rows(f"{_CANDIDATES} AND {size} >= ?", (least,)):
            row = SessionRow(**dict(zip(_COLUMNS, found, strict=True)))
            if self.rules.namespaces and row.namespace not in self.rules.namespaces:
                continue
            if due_at := row.find_due_time(self.rules, self.limit):
                waiting.append(
                    DueSession(
                        due_at,
                        row.id,
                        row.namespace,
                        row.key,
                        row.position,
                        row.served_version,
                        row.attempts + (row.leased_until is not None),
                        datetime.fromisoformat(row.last_activity),
                        row.in_use,
                    )
                )
        return sorted(waiting)

    def find_due(self, now: datetime) -> list[DueSession]:
        """Return the sessions that are due at `now`, longest waiting first."""
        return [one for one in self.find_waiting() if one.due_at <= now]

    def pass_over(self, due: DueSession) -> None:
        """Ignore the session until something is appended to it."""
        with translate_storage_errors(self.models.name), self.models.file.transaction() as db:
            db.execute(
                "UPDATE sessions SET settled = ? WHERE id = ? AND position = ?",
                (PASSED_OVER, due.id, due.position),
            )

    def find_model(self, due: DueSession) -> str | None:
        found = self.models.file.fetch_rows(
            "SELECT model FROM model_calls WHERE session_id = ? ORDER BY id DESC LIMIT 1",
            (due.id,),
        )
        return found[0][0] if found else None

    def read_session_spend(self, due: DueSession) -> float:
        """Return what idle work has spent on the session, in dollars, successful or not."""
        ((spent,),) = self.models.file.fetch_rows(
            "SELECT coalesce(sum(compactions.cost_usd), 0) FROM compactions"
            " JOIN compaction_requests ON compaction_requests.id = request_id"
            " WHERE session_id = ? AND worker IS NOT NULL",
            (due.id,),
        )
        return float(spent)

    def list_spend_since(self, since: datetime) -> list[tuple[datetime, float]]:
        """Return what idle work has spent since then, in dollars, oldest first."""
        found = self.models.file.fetch_rows(
            "SELECT recorded_at, compactions.cost_usd FROM compactions"
            " JOIN compaction_requests ON compaction_requests.id = request_id"
            " WHERE recorded_at > ? AND compactions.cost_usd > 0 AND worker IS NOT NULL"
            " ORDER BY recorded_at",
            (format_timestamp(since),),
        )
        return [(datetime.fromisoformat(at), cost) for at, cost in found]

    def find_affordable_time(self, now: datetime, hourly_usd: float | None) -> datetime | None:
        """Return when the last 60 minutes will have cost less than that; None if they do now."""
        if hourly_usd is None:
            return None
        spent = self.list_spend_since(now - SPEND_WINDOW)
        left = sum(cost for _, cost in spent)
        if not spent or left < hourly_usd:
            return None
        for at, cost in spent:
            left -= cost
            if left < hourly_usd:
                return at + SPEND_WINDOW
        return now + SPEND_WINDOW


@dataclass(frozen=True, slots=True)
class AttemptResult:
    notice_kind: NoticeKind
    details: Mapping[str, Any] = field(default_factory=dict)
    pause: timedelta | None = None
    """How long to put it behind other sessions, if it is still due."""
    error: Exception | None = None
    """An error that would affect other sessions too."""


@dataclass(frozen=True, slots=True)
class IdleAttempt:
    """A due session's compaction by one worker and its rules, since `began`."""

    store: SessionStore
    index: DueSessionIndex
    due: DueSession
    rules: IdleRules
    worker: str
    began: datetime
    cancellation: Cancellation = field(default_factory=Cancellation)

    @property
    def number(self) -> int:
        return self.due.attempts + 1

    def run(self) -> AttemptResult:
        """Compact the session unless it has changed; never raises."""
        try:
            with translate_storage_errors(self.store.name):
                try:
                    outcome = self._compact()
                except (NothingToCompactError, NotFoundError) as nothing:
                    return self._pass_over(str(nothing))
                if outcome.compacted:
                    names = ("boundary", "pre_tokens", "post_tokens", "summarizer", "reason")
                    details = {name: getattr(outcome, name) for name in names}
                    return AttemptResult(NoticeKind.DONE, details)
                if outcome.boundary is None:
                    return self._pass_over(outcome.reason)
                details = {"reason": outcome.reason}
                return AttemptResult(NoticeKind.PASSED_OVER, details, BUSY_PAUSE)
        except Exception as error:  # noqa: BLE001 - policies and summarizers may be users' own
            return self._explain(error)

    def make_request(self) -> CompactionRequest:
        """Return the request. Raises NothingToCompactError if the view is too small."""
        due, rules = self.due, self.rules
        request = make_compaction_request(
            self.store.settings,
            self.index.find_model(due),
            read_logged_context(self.store.events, due.namespace, due.key),
            trigger=Trigger.IDLE,
            by=self.worker,
            lease_s=rules.lease_s,
            cache_is_cold=self.store.events.clock() - due.last_activity >= CACHE_LIFE,
            found_at=due.lineage_version,
            activate=rules.activate,
        )
        if due.in_use < rules.least_utilization * request.limit:
            raise NothingToCompactError(
                f"{due.in_use:,} tokens are in use, less than the"
                f" {rules.least_utilization:.0%} of {request.limit:,}"
                f" ({request.limit_source.phrase}) that idle work begins at"
            )
        if not rules.may_spend(self.index.read_session_spend(due)):
            return replace(request, chain=SummaryChain())
        # In idle hours there is time: rather than fall back to `extractive`, try again later.
        patient = not rules.is_last(self.number)
        return replace(request, chain=replace(request.chain, has_fallback=not patient))

    def _compact(self) -> CompactionOutcome:
        due = self.due
        session = self.store.session(due.key, namespace=due.namespace, create=False)
        if session.position != due.position:
            raise StalePlanError("the session had new activity meanwhile")
        return session.log.compactor().compact(self.make_request(), self.cancellation)

    def _pass_over(self, reason: str) -> AttemptResult:
        """Leave the session alone until it changes."""
        self.index.pass_over(self.due)
        return AttemptResult(NoticeKind.PASSED_OVER, {"reason": reason})

    def _explain(self, error: Exception) -> AttemptResult:
        about: dict[str, Any] = {"reason": str(error) or type(error).__name__}
        match error:
            case LeaseHeldError() | StalePlanError() | CompactionCancelledError():
                return AttemptResult(NoticeKind.PASSED_OVER, about, pause=BUSY_PAUSE)
            case LeaseLostError():
                return AttemptResult(NoticeKind.LOST, about)
            case StorageError():
                # Not the session's fault, so no attempt is counted: all work has to wait.
                return AttemptResult(NoticeKind.FAILED, about, pause=BUSY_PAUSE, error=error)
            case InvalidSettingError():
                # Not the session's fault either; but other sessions may have a known model.
                return AttemptResult(NoticeKind.FAILED, about, pause=MISCONFIGURED_PAUSE)
        if not isinstance(error, CutbankError):
            key, namespace = self.due.key, self.due.namespace
            logger.error("compacting %r of %r failed", key, namespace, exc_info=error)
        about["attempt"] = self.number
        if not self.rules.is_last(self.number):
            pause = timedelta(seconds=self.rules.backoff_s * 2 ** (self.number - 1))
            about["next_at"] = self.store.events.clock() + pause
        return AttemptResult(NoticeKind.FAILED, about)
