"""What idle work makes of a session as it stands: whose turn it is, and why nobody compacts it."""

from dataclasses import dataclass
from enum import StrEnum


class IdleState(StrEnum):
    """One word for each; whatever comes first here goes before what follows."""

    CLOSED = "closed"
    SUB_AGENT = "sub-agent"
    """It works for another session, which waits for it."""
    RUNNING = "running"
    """Somebody is compacting it."""
    WAITING = "waiting"
    """A tool call is open."""
    ASLEEP = "asleep"
    """The agent goes on by itself, at a moment that it named."""
    PREPARED = "prepared"
    """A boundary waits for the threshold."""
    COMPACTED = "compacted"
    """Nothing was said since it was."""
    GIVEN_UP = "given-up"
    """All attempts failed, until something is said."""
    SMALL = "small"
    """It fills too little of its context."""
    NO_GAIN = "no-gain"
    """A compaction would not make it smaller."""
    DUE = "due"
    RESTING = "resting"
    """It will be due, if nothing is said until then."""


@dataclass(frozen=True, slots=True)
class IdleFacts:
    """What is known of a session; moments as the read models write them."""

    closed: bool
    is_sub_agent: bool
    leased_until: str | None
    open_calls: int
    wake_at: str | None
    is_prepared: bool
    is_served: bool
    """Whether a boundary is served."""
    settled: bool
    attempts: int
    utilization: float
    due_at: str | None

    def find_state(self, now: str, *, attempts: int, least_share: float) -> IdleState:
        """Where it stands at `now`, by the rules that its `due_at` was reckoned with."""
        # Whoever's lease ran out is dead, for all that is known: that was an attempt.
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
            # As it stood it was looked at, and passed over.
            (self.due_at is None, IdleState.NO_GAIN),
            (self.due_at is not None and self.due_at <= now, IdleState.DUE),
        )
        return next((state for holds, state in why if holds), IdleState.RESTING)
