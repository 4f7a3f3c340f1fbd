"""Makes one attempt to compact one due session."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from eventsourcing.persistence import PersistenceError

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
from ..compaction.cancellation import Cancellation
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
    is_for_good: bool = False
    """Whether to leave the session alone until it changes."""
    pause: timedelta | None = None
    """How long to put it behind other sessions, if it is still due."""
    error: Exception | None = None
    """An error that would affect other sessions too."""


@dataclass(frozen=True, slots=True)
class IdleAttempt:
    """A due session's compaction by one worker and its rules."""

    store: SessionStore
    index: DueSessionIndex
    due: DueSession
    rules: IdleRules
    worker: str

    @property
    def number(self) -> int:
        return self.due.attempts + 1

    def run(self, cancellation: Cancellation) -> AttemptResult:
        """Compact the session unless it has changed; never raises."""
        passed_over, failed = NoticeKind.PASSED_OVER, NoticeKind.FAILED
        try:
            with translate_storage_errors(self.store.name):
                return _make_result(self._compact(cancellation))
        except (NothingToCompactError, NotFoundError) as error:
            return AttemptResult(passed_over, _describe(error), is_for_good=True)
        except (LeaseHeldError, StalePlanError, CompactionCancelledError) as error:
            return AttemptResult(passed_over, _describe(error), pause=BUSY_PAUSE)
        except LeaseLostError as error:
            return AttemptResult(NoticeKind.LOST, _describe(error))
        except (StorageError, PersistenceError) as error:
            # Not the session's fault, so no attempt is counted: all work has to wait.
            return AttemptResult(failed, _describe(error), pause=BUSY_PAUSE, error=error)
        except InvalidSettingError as error:
            # Not the session's fault either; but other sessions may have a known model.
            return AttemptResult(failed, _describe(error), pause=MISCONFIGURED_PAUSE)
        except CutbankError as error:
            return self._make_failure(error)
        except Exception as error:
            # Policies and summarizers may be users' own and raise anything.
            logger.exception("compacting %r of %r failed", self.due.key, self.due.namespace)
            return self._make_failure(error)

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

    def _compact(self, cancellation: Cancellation) -> CompactionOutcome:
        due = self.due
        session = self.store.session(due.key, namespace=due.namespace, create=False)
        if session.position != due.position:
            raise StalePlanError("the session had new activity meanwhile")
        if self.store.events.clock() - due.last_activity < timedelta(
            seconds=self.rules.idle_time_s
        ):
            raise StalePlanError("it was found due by the rules of another worker")
        return session.log.compactor().compact(self.make_request(), cancellation)

    def _make_failure(self, error: Exception) -> AttemptResult:
        again = None
        if not self.rules.is_last(self.number):
            pause = timedelta(seconds=self.rules.backoff_s * 2 ** (self.number - 1))
            again = self.store.events.clock() + pause
        details = {**_describe(error), "attempt": self.number, "next_at": again}
        return AttemptResult(NoticeKind.FAILED, details)


def _make_result(outcome: CompactionOutcome) -> AttemptResult:
    if not outcome.compacted:
        is_for_good = outcome.boundary is None
        return AttemptResult(
            NoticeKind.PASSED_OVER,
            {"reason": outcome.reason},
            is_for_good=is_for_good,
            pause=None if is_for_good else BUSY_PAUSE,
        )
    done = {
        "boundary": outcome.boundary,
        "pre_tokens": outcome.pre_tokens,
        "post_tokens": outcome.post_tokens,
        "summarizer": outcome.summarizer,
        "reason": outcome.reason,
    }
    return AttemptResult(NoticeKind.DONE, done)


def _describe(error: Exception) -> dict[str, Any]:
    return {"reason": str(error) or type(error).__name__}
