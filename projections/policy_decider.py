"""Replays a policy: at its threshold, and if a prompt is too large for the model."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ..domain.cached_property import cached_property
from ..domain.compaction import Compaction
from ..domain.compaction_events import CompactBoundary, Summary, Trigger
from ..domain.compaction_terms import REGROWTH_SHARE, CompactionTerms
from ..domain.cut_points import find_orphans
from ..domain.errors import (
    NothingToCompactError,
    PolicyFailedError,
    SummarizerFailedError,
    describe_error,
)
from ..domain.event import Event
from ..domain.policies.policy import is_due, quiet_below
from ..domain.ranges import Ranges
from ..domain.summaries.summarizer import Draft
from ..domain.window import LazySequence, Window
from .compaction_window import frame_window
from .planned_compaction import (
    PlannedCompaction,
    check_gain,
    make_boundary_fields,
    make_summary_fields,
    plan_compaction,
)
from .recording import RecordedCall, Recording, SessionTime
from .replay import FutileCompaction, ReplayCompaction, ReplayDecision
from .replay_fold import ReplayFold
from .view_content import get_system_prompt

WriteSummary = Callable[[PlannedCompaction], tuple[Draft, str, tuple[str, ...]]]
"""Returns the draft that passed, its summarizer, and one line for each that was rejected.

Raises SummarizerFailedError if none passes.
"""


@dataclass
class PolicyDecider:
    """Asks a policy before each call, as an agent's loop does, and records its decisions.

    The decisions are events of a lineage that is not stored, made by the same aggregate as live
    ones. The clock is the session's own: the time of the newest event that the call saw.
    """

    terms: CompactionTerms
    recording: Recording
    write: WriteSummary
    lineage: str = "replay"
    events: list[Event] = field(default_factory=list, init=False)
    """All decisions, for a caller that stores them."""

    def __post_init__(self) -> None:
        recording = self.recording
        self._time = SessionTime(recording)
        self._now = self._time.now
        self._lineage = Compaction.open(
            recording.namespace,
            recording.key,
            self.lineage,
            clock=lambda: self._now,
            subject=recording.subject,
        )
        self.events += self._lineage.collect_events()

    def decide(self, fold: ReplayFold, call: RecordedCall) -> list[ReplayDecision]:
        self._now = max(self._now, self._time.advance(call.last_seen_position))
        decided: list[ReplayDecision] = []
        limit = self.terms.limit
        is_new = not fold.history.is_same_request
        if is_new and not self._is_futile(fold) and self._is_due(fold, call):
            decided.append(self._compact(fold, Trigger.THRESHOLD, call))
        if 0 < limit < fold.tokens:
            # The provider would refuse it; like an agent's loop, compact once, regardless of the
            # threshold.
            decided.append(self._compact(fold, Trigger.OVERFLOW, call))
        self.events += self._lineage.collect_events()
        return decided

    def _compact(self, fold: ReplayFold, trigger: Trigger, call: RecordedCall) -> ReplayDecision:
        terms = replace(self.terms, trigger=trigger)
        found = None
        try:
            with self._naming_policy(call):
                found = plan_compaction(
                    self._make_window(fold, terms),
                    terms,
                    fold.iter_originals,
                    self._lineage.state.decided,
                )
            if found is None:
                return FutileCompaction(trigger, "the policy finds nothing to do")
            draft, author, refused = self.write(found)
            check_gain(found, found.count_post_tokens(draft.text), terms)
        except (NothingToCompactError, SummarizerFailedError) as nothing:
            # As in an agent's loop: a fruitless compaction after a refusal is tried again at the
            # next one.
            is_gain = found is not None and isinstance(nothing, NothingToCompactError)
            if trigger is Trigger.THRESHOLD or is_gain:
                self._lineage.fail(reason=str(nothing), after=fold.history.position)
            return FutileCompaction(trigger, str(nothing))
        lineage = self._lineage
        number = lineage.record_boundary(
            make_boundary_fields(found, terms, draft.text),
            make_summary_fields(found, draft, author),
            based_on=found.based_on,
            activate_at=fold.history.position,
        )
        news = lineage.collect_events()
        self.events += news
        boundary = next(event for event in news if isinstance(event, CompactBoundary))
        summary = next((event for event in news if isinstance(event, Summary)), None)
        left = fold.find_leaving(boundary)
        fold.boundaries[number] = boundary, summary
        bought = 0
        if draft.model is not None:
            bought = found.material.replaced_tokens
        return ReplayCompaction(
            boundary,
            summary,
            left,
            unchanged=fold.serve(number, lineage.version),
            summary_input_tokens=bought,
            orphaned_calls=_find_orphaned_calls(found),
            refused_drafts=refused,
        )

    def _is_due(self, fold: ReplayFold, call: RecordedCall) -> bool:
        try:
            with self._naming_policy(call):
                if self._quiet_below is not None and fold.tokens <= self._quiet_below:
                    return False
                terms = replace(self.terms, trigger=Trigger.THRESHOLD)
                return is_due(self.terms.policy, self._make_window(fold, terms))
        except NothingToCompactError:
            return True  # it is due; the compaction itself reports that nothing can leave

    @cached_property
    def _quiet_below(self) -> int | None:
        """The most tokens at which the policy need not be asked; None if it always has to be."""
        return quiet_below(self.terms.policy, self.terms.limit)

    @contextmanager
    def _naming_policy(self, call: RecordedCall) -> Iterator[None]:
        """Name the policy and the call in any error of a policy, which may raise anything."""
        try:
            yield
        except NothingToCompactError:
            raise
        except Exception as error:
            raise PolicyFailedError(
                f"{self.terms.policy.name} failed at call {call.number} of {self.recording.key!r}, "
                f"which saw up to #{call.last_seen_position}: {describe_error(error)}"
            ) from error

    def _is_futile(self, fold: ReplayFold) -> bool:
        """Check whether a compaction failed before and little was added since."""
        futile = self._lineage.state.futile
        position = fold.history.position
        # A fork shares only the boundaries that its parent was served.
        if fold.request_tokens < self.terms.limit < fold.tokens:
            return False  # the provider would refuse it, and something may leave by now
        if not futile or any(futile < first <= position for first in self.recording.forks):
            return False
        news = self.recording.iter_events(range(futile + 1, position + 1))
        return sum(one.tokens for one in news) < REGROWTH_SHARE * self.terms.limit

    def _make_window(self, fold: ReplayFold, terms: CompactionTerms) -> Window:
        return frame_window(
            fold.history,
            terms,
            self._now if self._time.is_told else None,
            items=LazySequence(fold.list_items),
            after=fold.history.position,
            in_use=fold.tokens,
            cached=fold.unchanged,
            system_prompt=get_system_prompt(fold.history.system) or "",
            memo=fold.worked_out,
        )


def _find_orphaned_calls(found: PlannedCompaction) -> tuple[str, ...]:
    if not found.settlement.repairs:
        return ()
    items, plan = found.window.items, found.plan
    # What would stay under the unrepaired plan.
    staying = Ranges.of(item.position for item in items if item.place >= (plan.cut or 0))
    broken = find_orphans(items, staying - plan.drops)
    return tuple(sorted(broken.calls | broken.results))
