"""Decides the idle state of a session: whether it is due, or why not."""

from dataclasses import dataclass
from enum import StrEnum


class IdleState(StrEnum):
    """The states, in order of precedence."""

    CLOSED = "closed"
    SUB_AGENT = "sub-agent"
    """It works for another session, which waits for it."""
    RUNNING = "running"
    """A worker is compacting it."""
    WAITING = "waiting"
    """A tool call is open."""
    ASLEEP = "asleep"
    """The agent resumes by itself at a scheduled time."""
    PREPARED = "prepared"
    """A prepared boundary waits for the threshold."""
    COMPACTED = "compacted"
    """Nothing was added since its compaction."""
    GIVEN_UP = "given-up"
    """All attempts failed; a new block starts them again."""
    SMALL = "small"
    """It fills too little of its context."""
    NO_GAIN = "no-gain"
    """A compaction would not make it smaller."""
    DUE = "due"
    RESTING = "resting"
    """It will be due if nothing is added until then."""


@dataclass(frozen=True, slots=True)
class IdleFacts:
    """The facts about a session; times are in the format of the read models."""

    closed: bool
    is_sub_agent: bool
    leased_until: str | None
    open_calls: int
    wake_at: str | None
    is_prepared: bool
    is_served: bool
    settled: bool
    attempts: int
    utilization: float
    due_at: str | None

    def find_state(self, now: str, *, attempts: int, least_share: float) -> IdleState:
        """Return the state at `now`, by the rules with which `due_at` was computed."""
        # An expired lease means that its worker died, which counts as an attempt.
        is_leased = self.leased_until is not None and self.leased_until > now
        begun = self.attempts + (self.leased_until is not None and not is_leased)
        why = (
            (self.closed, IdleState.CLOSED),
            (self.is_sub_agent, IdleState.SUB_AGENT),
            (is_leased, IdleState.RUNNING),
            (self.open_calls > 0, IdleState.WAITING),
            (self.wake_at is not None and self.wake_at > now, IdleState.ASLEEP),
            (self.is_prepared, IdleState.PREPARED),
            (self.settled and self.is_served, IdleState.COMPACTED),
            (self.settled, IdleState.NO_GAIN),
            (begun >= attempts, IdleState.GIVEN_UP),
            (self.utilization < least_share, IdleState.SMALL),
            # It was examined in this state and skipped.
            (self.due_at is None, IdleState.NO_GAIN),
            (self.due_at is not None and self.due_at <= now, IdleState.DUE),
        )
        return next((state for holds, state in why if holds), IdleState.RESTING)
