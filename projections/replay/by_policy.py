"""Decides as a policy would: at its threshold, and where a prompt is too large for the model."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from ...domain.blocks import Kind
from ...domain.compaction import Compaction, CompactionState, lineage_id
from ...domain.compaction_events import CompactBoundary, Summary, Trigger
from ...domain.cut_points.orphans import orphans
from ...domain.deferred import Deferred
from ...domain.errors import NothingToCompactError, PolicyFailedError
from ...domain.event import Event
from ...domain.planned_price import order_of
from ...domain.policies.policy import is_due, lets_be
from ...domain.ranges import Ranges
from ...domain.session_events import BlockAppended
from ...domain.summaries.summariser import Draft, Material
from ...domain.terms import REGROWTH, Terms
from ...domain.window import Plan, Window
from ..planned import Planned, boundary_fields, check_gain, planned, summary_fields
from .decider import Decided
from .fold import Fold
from .recording import Call, Recording
from .served import Compacted, Futile
from .session_time import SessionTime
from .writing import UnwrittenError, Writers


@dataclass(frozen=True, slots=True)
class Begun:
    """A lineage that was decided on before, by this policy or another."""

    version: int
    state: CompactionState
    at: datetime
    """When it was decided on last."""


@dataclass
class ByPolicy:
    """Asks a policy before each call, as an agent's loop does, and keeps what it decides.

    The decisions are events of a lineage that nobody stores, decided by the aggregate that decides
    live. Time is the session's own: that of the newest that the call saw.
    """

    terms: Terms
    recording: Recording
    writers: Writers = Writers()
    lineage: str = "replay"
    regrowth: float = REGROWTH
    once_a_turn: bool = False
    """Whether one compaction by threshold has to do for all calls of a turn."""
    begun: Begun | None = None
    """How far a stored lineage has come; None begins one."""
    events: list[Event] = field(default_factory=list, init=False)
    """All that was decided, for who wants to store it."""

    def __post_init__(self) -> None:
        recording = self.recording
        self._time = SessionTime(recording)
        self._now = self._time.now
        if self.begun is None:
            self._lineage = Compaction.open(
                recording.namespace,
                recording.key,
                self.lineage,
                clock=self._clock,
                subject=recording.subject,
            )
            self.events += self._lineage.collect_events()
            return
        self._now = max(self._now, self.begun.at)
        self._lineage = Compaction(
            lineage_id(recording.namespace, recording.key, self.lineage),
            version=self.begun.version,
            state=self.begun.state,
            subject=recording.subject,
            clock=self._clock,
        )

    def decided(self, fold: Fold, call: Call) -> list[Decided]:
        self._now = max(self._now, self._time.advance(call.sees))
        decided: list[Decided] = []
        limit = self.terms.limit
        if not fold.history.is_same_request and (
            self._is_due(fold, call)
            and not self._was_this_turns(fold)
            and not self._is_futile(fold)
        ):
            decided.append(self._compacted(fold, Trigger.THRESHOLD, call))
        if 0 < limit < fold.tokens:
            # The provider refuses it; the loop then compacts whatever the threshold says, once.
            decided.append(self._compacted(fold, Trigger.OVERFLOW, call))
        self.events += self._lineage.collect_events()
        return decided

    def _compacted(self, fold: Fold, trigger: Trigger, call: Call) -> Decided:
        terms = replace(self.terms, trigger=trigger)
        found = None
        try:
            found = self._planned(fold, terms, call)
            if found is None:
                return Futile(trigger, "the policy finds nothing to do")
            written = self.writers.written(found, self._user_texts)
            check_gain(found, found.post_tokens(written.draft.text), terms)
        except (NothingToCompactError, UnwrittenError) as nothing:
            # As an agent's loop has it: whoever was asked for a plan after a refusal, and found
            # nothing, is asked again at the next.
            is_gain = found is not None and isinstance(nothing, NothingToCompactError)
            if trigger is Trigger.THRESHOLD or is_gain:
                self._lineage.fail(reason=str(nothing), after=fold.history.position)
            return Futile(trigger, str(nothing))
        draft = written.draft
        lineage = self._lineage
        number = lineage.draw(
            boundary_fields(found, terms, draft.text),
            summary_fields(found, draft, written.summariser),
            planned_on=found.planned_on,
            activate_at=fold.history.position,
        )
        boundary, summary = _said(lineage.collect_events(), self.events)
        fold.draw(boundary, summary)
        bought = 0
        if draft.model is not None:
            bought = order_of(found.window, found.material, None).input
        return Compacted(
            boundary,
            summary,
            unchanged=fold.serve(number, lineage.version),
            bought=bought,
            orphaned=_orphaned(found),
            refused=written.refused,
        )

    def _planned(self, fold: Fold, terms: Terms, call: Call) -> Planned | None:
        window = self._window(fold, terms.trigger)
        decided = self._lineage.state.decided
        try:
            return planned(window, fold.view(), terms, fold.originals, decided)
        except NothingToCompactError:
            raise
        except Exception as error:  # whatever a user's policy raises
            raise self._failed(call, error) from error

    def _is_due(self, fold: Fold, call: Call) -> bool:
        try:
            if self._lets_be is not None and fold.tokens <= self._lets_be:
                return False
            return is_due(self.terms.policy, self._window(fold, Trigger.THRESHOLD))
        except NothingToCompactError:
            return True  # it would, and there is nothing: that is said where it is carried out
        except Exception as error:  # whatever a user's policy raises
            raise self._failed(call, error) from error

    @cached_property
    def _lets_be(self) -> int | None:
        """The most tokens at which the policy need not be asked; None where it always has to be."""
        return lets_be(self.terms.policy, self.terms.limit)

    def _failed(self, call: Call, error: Exception) -> PolicyFailedError:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return PolicyFailedError(
            f"{self.terms.policy.name} failed at call {call.number} of {self.recording.key!r}, "
            f"which saw up to #{call.sees}: {what}"
        )

    def _is_futile(self, fold: Fold) -> bool:
        """Whether it came to nothing before, and hardly anything was said since."""
        futile = self._lineage.state.futile
        position = fold.history.position
        # A fork shares the boundaries that its parent was served, and nothing else of it.
        if fold.request_tokens < self.terms.limit < fold.tokens:
            return False  # the provider would refuse it, and something may leave by now
        if not futile or any(futile < first <= position for first in self.recording.forks):
            return False
        news = self.recording.log[futile : fold.history.position]
        return sum(one.tokens for one in news) < self.regrowth * self.terms.limit

    def _was_this_turns(self, fold: Fold) -> bool:
        """Whether this turn has had the one compaction that is to do for it."""
        boundary = fold.history.boundary
        if not self.once_a_turn or boundary is None or boundary.trigger is not Trigger.THRESHOLD:
            return False
        turn_at = self.recording.turn_at
        return turn_at(fold.history.effective_from) == turn_at(fold.history.position)

    def _window(self, fold: Fold, trigger: Trigger) -> Window:
        history, terms = fold.history, self.terms
        boundary = history.boundary
        since = None
        if boundary is not None and self._time.is_told:
            since = max(0.0, (self._now - boundary.timestamp).total_seconds())
        return Window(
            items=Deferred(fold.items),
            after=history.position,
            limit=terms.limit,
            trigger=trigger,
            in_use=fold.tokens,
            boundary=boundary,
            summary=history.summary,
            pinned=history.pinned,
            hides=dict(history.hides),
            retracted=history.retracted,
            cached=fold.unchanged,
            prices=terms.prices,
            expected_calls=terms.expected_calls,
            system=history.system.event.text if history.system else "",  # type: ignore[attr-defined]
            since_boundary_s=since,
            worked_out=fold.worked_out,
        )

    def _user_texts(self, draft: Draft, material: Material) -> list[str]:
        """What users really said of what the draft may quote: all that leaves, and all it cites."""
        said = {item.position: item.block.text for item in material.gone if item.kind is Kind.USER}
        for position in draft.cites - Ranges.of(said):
            event = self.recording.at(position).event
            if isinstance(event, BlockAppended) and event.block.kind is Kind.USER:
                said[position] = event.block.text
        return list(said.values())

    def _clock(self) -> datetime:
        return self._now


def _said(news: list[Event], events: list[Event]) -> tuple[CompactBoundary, Summary | None]:
    """The boundary and the summary of what was just drawn; `events` takes it all in."""
    events += news
    boundary = next(event for event in news if isinstance(event, CompactBoundary))
    return boundary, next((event for event in news if isinstance(event, Summary)), None)


def _orphaned(found: Planned) -> tuple[str, ...]:
    """Calls that the raw plan would have parted from their results."""
    if not found.settlement.repairs:
        return ()
    window, plan = found.window, found.plan
    broken = orphans(window.items, _stays(window, plan))
    return tuple(sorted(broken.calls | broken.results))


def _stays(window: Window, plan: Plan) -> Ranges:
    """What would stay if the raw plan were carried out to the letter."""
    cut = plan.cut or 0
    return Ranges.of(item.position for item in window.items if item.place >= cut) - plan.drops
