"""Guards one lineage of a session: which boundary is served, and that no two plans both apply."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self
from uuid import NAMESPACE_URL, UUID, uuid5

from . import compaction_events as events
from .errors import InvalidSettingError, LeaseLostError, NotFoundError, StalePlanError
from .event import Aggregate, Clock, Event

MAIN_LINEAGE = "main"
"""The lineage that agents are served."""
RECORDED_LINEAGE = "recorded"
"""The lineage that holds the compactions of an imported session."""
UNSHOWN_SUMMARIZER = "not shown"
"""The summarizer's name if a transcript does not show its summary, as when it is encrypted."""


def check_lineage_syntax(lineage: str) -> None:
    """Raise InvalidSettingError unless views can be named LINEAGE@VERSION#POSITION with it."""
    is_plain = lineage.isprintable() and lineage == lineage.strip()
    if not lineage or not is_plain or {"@", "#"} & set(lineage):
        raise InvalidSettingError(
            f"{lineage!r} cannot name a lineage: write printed characters, neither '#' nor '@', no"
            " space at the ends"
        )


def derive_lineage_id(namespace: str, key: str, lineage: str, generation: int = 0) -> UUID:
    """Return the id of a lineage's stream, derived from its name and generation alone."""
    kind = f"lineage.{generation}" if generation else "lineage"
    return uuid5(
        NAMESPACE_URL, f"cutbank:{kind}:{len(namespace)}:{namespace}:{len(key)}:{key}:{lineage}"
    )


class CompactionState(NamedTuple):
    """What decisions read, of constant size."""

    active: int = 0
    """The boundary that is served; 0 if there is none."""
    beneath: int = 0
    """The boundary that the active one builds upon; a revert serves it again."""
    effective_from: int = 0
    switched: int = 0
    """The version of the newest activation or revert; a fork inherits it."""
    decided: int = 0
    """The version of the last decision (boundary, activation, revert); plans are made on it."""
    prepared: int = 0
    """The newest boundary that is neither activated nor dropped; a newer one replaces it."""
    prepared_beneath: int = 0
    requested: int = 0
    """The version of the newest request that has not ended."""
    futile: int = 0
    """The session's position when a compaction failed; 0 once one succeeded."""
    deleted: bool = False
    """Whether its session was deleted, which ends the lineage."""


class Compaction(Aggregate[CompactionState]):
    """One lineage of compaction decisions over one session."""

    @classmethod
    def open(
        cls,
        namespace: str,
        key: str,
        lineage: str,
        *,
        clock: Clock,
        subject: str,
        base: events.LineageBase | None = None,
        inherited: CompactionState | None = None,
        generation: int = 0,
    ) -> Self:
        """Begin a lineage; with a base, one version after it, serving the same view."""
        compaction = cls(
            derive_lineage_id(namespace, key, lineage, generation),
            version=base.version if base else 0,
            state=inherited or CompactionState(),
            subject=subject,
            clock=clock,
        )
        compaction._trigger(
            events.CompactionOpened,
            namespace=namespace,
            key=key,
            lineage=lineage,
            base=base,
            generation=generation,
        )
        return compaction

    def request(self, **request: Any) -> int:
        """Record that a compaction begins, and return the request's version."""
        self._trigger(events.CompactionRequested, **request)
        return self.version

    def record_boundary(
        self,
        boundary: Mapping[str, Any],
        summary: Mapping[str, Any] | None,
        *,
        based_on: int,
        activate_at: int | None,
        leased_by: int | None = None,
    ) -> int:
        """Record a boundary and its summary, and return the boundary's version.

        Args:
            based_on: `state.decided` at the time of the plan.
            activate_at: The position from which it is served; None prepares it for `activate()`.
            leased_by: The request whose lease must still be valid.
        """
        self.check_plan(based_on, leased_by)
        name = self._trigger(events.CompactBoundary, **boundary).originator_version
        if summary is not None:
            self._trigger(events.Summary, boundary=name, **summary)
        if activate_at is not None:
            self.activate(name, activate_at)
        return name

    def check_plan(self, based_on: int, leased_by: int | None = None) -> None:
        """Raise LeaseLostError or StalePlanError if a boundary must not be recorded any more."""
        requested = self.state.requested
        if leased_by is not None and leased_by != requested:
            others = f"request {requested} has taken over" if requested else "others ended it"
            raise LeaseLostError(f"the lease of request {leased_by} is lost: {others}")
        if based_on != self.state.decided:
            raise StalePlanError(
                f"the plan was made at lineage version {based_on}, and boundary or revert "
                f"{self.state.decided} was decided since: plan again"
            )

    def activate(
        self, boundary: int, effective_from: int, trigger: events.Trigger | None = None
    ) -> None:
        """Serve the prepared boundary from a position on."""
        self._check_prepared(boundary)
        self._trigger(
            events.BoundaryActivated,
            boundary=boundary,
            previous=self.state.prepared_beneath or None,
            effective_from=max(effective_from, self.state.effective_from),
            trigger=trigger,
        )

    def drop(self, boundary: int, reason: str) -> None:
        """Give up the prepared boundary; the served view and plans made on it stay valid."""
        self._check_prepared(boundary)
        self._trigger(events.PreparationDropped, boundary=boundary, reason=reason)

    def revert(self, effective_from: int, *, beneath: int) -> int:
        """Serve the boundary under the active one; `beneath` is the boundary under that."""
        if not self.state.active:
            raise NotFoundError("there is no compaction to revert: the view is the whole history")
        reverted = self.state.active
        self._trigger(
            events.CompactionReverted,
            boundary=reverted,
            to=self.state.beneath or None,
            effective_from=max(effective_from, self.state.effective_from),
            previous=beneath or None,
        )
        return reverted

    def reject(self, **rejection: Any) -> None:
        self._trigger(events.CompactionRejected, **rejection)

    def fail(self, **failure: Any) -> None:
        self._trigger(events.CompactionFailed, **failure)

    def delete(self) -> None:
        """End the lineage, since its session is deleted."""
        self._trigger(events.LineageDeleted)

    def _check_prepared(self, boundary: int) -> None:
        if boundary == 0 or boundary != self.state.prepared:
            raise StalePlanError(
                f"boundary {boundary} is not the prepared one ({self.state.prepared or 'none'})"
            )

    def next_state(self, event: Event) -> CompactionState:
        state, version = self.state, event.originator_version
        match event:
            case events.CompactionRequested():
                return state._replace(requested=version)
            case events.CompactionFailed(stood_in=None, after=after):
                return state._replace(requested=0, futile=after)
            case events.CompactBoundary(previous=previous):
                return state._replace(
                    decided=version,
                    prepared=version,
                    prepared_beneath=previous or 0,
                    requested=0,
                    futile=0,
                )
            case (
                events.BoundaryActivated(
                    boundary=active, effective_from=position, previous=previous
                )
                | events.CompactionReverted(to=active, effective_from=position, previous=previous)
            ):
                return CompactionState(
                    active=active or 0,
                    beneath=previous or 0,
                    effective_from=position,
                    switched=version,
                    decided=version,
                    requested=state.requested,
                )
            case events.PreparationDropped():
                return state._replace(prepared=0, prepared_beneath=0)
            case events.LineageDeleted():
                return CompactionState(deleted=True)
            case _:
                return state
