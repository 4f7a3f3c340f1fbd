"""Makes one attempt to compact one due session."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

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
from ....domain.idle_rules import IdleRules
from ...storage.earlier_calls import read_logged_context
from ...storage.event_log.storage_errors import translate_storage_errors
from ..compaction.background import Cancellation
from ..compaction.from_settings import make_compaction_request
from ..compaction.options import CompactionRequest
from ..compaction.outcome import CompactionOutcome
from ..compaction.summary_chain import SummaryChain
from ..sessions.session_store import SessionStore
from .due_sessions import DueSession, DueSessionIndex
from .notices import NoticeKind

logger = logging.getLogger("cutbank.idle")

CACHE_LIFE = timedelta(hours=1)
"""The longest that any provider caches a prompt between uses."""
BUSY_PAUSE = timedelta(seconds=30)
"""How long to leave a session alone if another process has it, or if it cannot be stored."""
MISCONFIGURED_PAUSE = timedelta(minutes=10)
"""How long to leave a session alone if its settings cannot be met."""


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
