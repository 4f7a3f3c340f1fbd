"""One attempt at one due session: how it is compacted, and what it comes to."""

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
from ....domain.idle import IdleRules
from ...storage.earlier_calls import logged_context
from ...storage.event_log.plain_errors import speaking_plainly
from ..compaction.by_settings import order_by
from ..compaction.cancellation import Cancellation
from ..compaction.order import Order
from ..compaction.outcome import Outcome
from ..compaction.summary_chain import SummaryChain
from ..sessions.session_store import SessionStore
from .due_sessions import Due, DueSessions
from .notices import About

logger = logging.getLogger("cutbank.idle")

CACHE_LIFE = timedelta(hours=1)
"""The longest that any provider keeps a prompt in its cache unasked."""
A_WHILE = timedelta(seconds=30)
"""How long a session is left alone that somebody else is at, or that cannot be stored."""
UNTIL_SETTLED = timedelta(minutes=10)
"""How long a session is left alone of which the settings ask what cannot be."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What an attempt came to."""

    about: About
    details: Mapping[str, Any] = field(default_factory=dict)
    """What is told of it."""
    is_for_good: bool = False
    """Whether nothing is to be done until something happens in the session."""
    aside: timedelta | None = None
    """How long others go first, where it is due as before."""
    met_others: bool = False
    """Whether somebody else was at it."""
    trouble: Exception | None = None
    """What would keep other sessions from being compacted as well."""


class Attempt:
    """Carries out what was found due by the rules of when it was begun."""

    def __init__(
        self, store: SessionStore, found: DueSessions, due: Due, rules: IdleRules, worker: str
    ) -> None:
        self.store = store
        self.found = found
        self.due = due
        self.rules = rules
        self.worker = worker
        self.number = due.attempts + 1
        """Which one it is in a row."""

    def made(self, cancellation: Cancellation) -> Fate:
        """Compact the session, if it is as it was found; never raises."""
        try:
            with speaking_plainly(self.store.name):
                return self._done(self._compacted(cancellation))
        except (NothingToCompactError, NotFoundError) as error:
            return Fate(About.PASSED_OVER, _why(error), is_for_good=True)
        except (LeaseHeldError, StalePlanError) as error:
            return Fate(About.PASSED_OVER, _why(error), aside=A_WHILE, met_others=True)
        except CompactionCancelledError as error:
            return Fate(About.PASSED_OVER, _why(error), aside=A_WHILE)
        except LeaseLostError as error:
            return Fate(About.LOST, _why(error))
        except (StorageError, PersistenceError) as error:
            # Not the session's fault, so no attempt is counted in the log: all work has to wait.
            return Fate(About.FAILED, _why(error), aside=A_WHILE, trouble=error)
        except InvalidSettingError as error:
            # As above; but of other sessions more may be known, such as which model they ask.
            return Fate(About.FAILED, _why(error), aside=UNTIL_SETTLED)
        except CutbankError as error:
            return self._failed(error)
        except Exception as error:
            # Policies and summarisers may be users' own, and raise anything.
            logger.exception("compacting %r of %r failed", self.due.key, self.due.namespace)
            return self._failed(error)

    def order(self) -> Order:
        """What is asked for. Raises NothingToCompactError where the view is too small."""
        due, rules = self.due, self.rules
        order = order_by(
            self.store.settings,
            self.found.model_of(due),
            logged_context(self.store.events, due.namespace, due.key),
            trigger=Trigger.IDLE,
            by=self.worker,
            lease_s=rules.lease_s,
            cache_is_cold=self.store.events.clock() - due.last_activity >= CACHE_LIFE,
            found_at=due.lineage_version,
            activate=rules.activate,
        )
        if due.in_use < rules.least_utilisation * order.limit:
            raise NothingToCompactError(
                f"{due.in_use:,} tokens are in use, less than the"
                f" {rules.least_utilisation:.0%} of {order.limit:,} ({order.limit_source.phrase})"
                " that idle work begins at"
            )
        if not rules.may_spend(self.found.spent_on(due)):
            return replace(order, chain=SummaryChain())
        # In idle hours nobody waits: rather than to stand in, it is tried again.
        patient = not rules.is_last(self.number)
        return replace(order, chain=replace(order.chain, stands_in=not patient))

    def _compacted(self, cancellation: Cancellation) -> Outcome:
        due = self.due
        session = self.store.session(due.key, namespace=due.namespace, create=False)
        if session.position != due.position:
            raise StalePlanError("something was said meanwhile")
        return session.log.compactor().compact(self.order(), cancellation)

    def _done(self, outcome: Outcome) -> Fate:
        if outcome.compacted:
            done = {
                "boundary": outcome.boundary,
                "pre_tokens": outcome.pre_tokens,
                "post_tokens": outcome.post_tokens,
                "summariser": outcome.summariser,
                "reason": outcome.reason,
            }
            return Fate(About.DONE, done)
        is_for_good = outcome.boundary is None
        return Fate(
            About.PASSED_OVER,
            {"reason": outcome.reason},
            is_for_good=is_for_good,
            aside=None if is_for_good else A_WHILE,
        )

    def _failed(self, error: Exception) -> Fate:
        again = None
        if not self.rules.is_last(self.number):
            pause = timedelta(seconds=self.rules.backoff_s * 2 ** (self.number - 1))
            again = self.store.events.clock() + pause
        return Fate(About.FAILED, {**_why(error), "attempt": self.number, "next_at": again})


def _why(error: Exception) -> dict[str, Any]:
    return {"reason": str(error) or type(error).__name__}
