"""Folds a session's events, and those of its served lineage, into its row in the index."""

import re
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from ..domain.blocks import UNSENT_KINDS, BlockKind
from ..domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE
from ..domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionFailed,
    CompactionRequested,
    CompactionReverted,
)
from ..domain.context_limit import DEFAULT_LIMIT, LimitSource
from ..domain.event import Event
from ..domain.idle_rules import IdleRules
from ..domain.session import SessionState
from ..domain.session_events import (
    BlockAppended,
    BlocksRetracted,
    ParentNamed,
    SessionOpened,
    SessionTitled,
    SystemPromptSet,
    ToolsSet,
)
from ..domain.token_estimate import estimate_text
from .timestamps import add_seconds, format_timestamp

DECIDED = 1
"""A decision was made since the newest block, so that there is nothing to do."""
PASSED_OVER = 2
"""Idle work examined the session since its newest block, and left it as it is."""
_PROMPT_CHARS = 200
"""How many characters of the first prompt are kept."""
_TAGGED_CHARS = 20_000
"""How many characters of a text are searched for its prompt."""
_LEADING_TAGS = re.compile(r"\A\s*(?:<([\w-]+)[^<>]*>.*?</\1>\s*)+", re.DOTALL)


class IdleState(StrEnum):
    """Whether a session is due for idle compaction, or why not, in order of precedence."""

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


@dataclass(slots=True)
class SessionRow:
    """One session as of a notification of the log."""

    id: int
    """The notification that opened it."""
    stream: str
    namespace: str
    key: str
    name: str = ""
    """The name shown to users: the title, or else the key."""
    title: str | None = None
    source: str | None = None
    subject: str | None = None
    parent_id: int | None = None
    parent_namespace: str | None = None
    parent_key: str | None = None
    parent_call: str | None = None
    forked_from_id: int | None = None
    forked_at: int | None = None
    opened_at: str = ""
    last_activity: str = ""
    position: int = 0
    turns: int = 0
    blocks: int = 0
    bytes: int = 0
    """The size of its own events and bodies as JSON and text; a fork copies nothing."""
    tokens: int = 0
    view_tokens: int | None = 0
    """None, while rows are made, if the view has to be measured again."""
    system_tokens: int = 0
    tools_tokens: int = 0
    utilisation: float = 0.0
    open_calls: int = 0
    closed: int = 0
    served_lineage: str | None = None
    """The lineage from which views are served, once it has events of its own; at first the recorded
    one in an imported branch."""
    served_version: int = 0
    """The newest version of that lineage; at first the one that a fork inherits."""
    reported: int | None = None
    """Tokens of the newest prompt on this view by the provider's count; None if unreported."""
    in_use: int = 0
    """Tokens of context in use: reported ones and an estimate of later ones, or an estimate."""
    has_calls: int = 0
    """Whether a call of a model was recorded."""
    context_limit: int = DEFAULT_LIMIT
    """Tokens that a prompt may have, as far as the log and the model tell."""
    limit_source: str = LimitSource.DEFAULT.value
    wake_at: str | None = None
    """When the agent resumes by itself."""
    leased_until: str | None = None
    """When the current lease ends; None without a lease."""
    settled: int = 0
    """DECIDED or PASSED_OVER if that happened since the newest block; else 0."""
    attempts: int = 0
    """How many compactions in a row have failed since the newest block."""
    failed_at: str | None = None
    project: str | None = None
    """Where its agent worked."""
    first_prompt: str | None = None
    """The beginning of the user's first request."""
    model: str | None = None
    """The model of the newest call that names one."""
    said_at: str | None = None
    """The time of the newest block, by its source's clock if it was imported."""

    @classmethod
    def from_opened_event(cls, number: int, event: SessionOpened) -> Self:
        fork = event.fork
        return cls(
            id=number,
            stream=str(event.originator_id),
            namespace=event.namespace,
            key=event.key,
            title=event.title,
            source=event.source,
            subject=event.subject,
            project=event.project,
            parent_namespace=event.parent.namespace if event.parent else None,
            parent_key=event.parent.key if event.parent else None,
            parent_call=event.parent.tool_call_id if event.parent else None,
            forked_at=fork.position if fork else None,
            opened_at=format_timestamp(event.timestamp),
            # A fork's shared blocks belong to its parent.
            view_tokens=None if fork else 0,
            served_lineage=RECORDED_LINEAGE if fork and fork.lineage == RECORDED_LINEAGE else None,
            served_version=fork.lineage_version if fork else 0,
        )

    @property
    def columns(self) -> dict[str, Any]:
        self.name = self.title or self.key
        return {name: getattr(self, name) for name in SESSION_COLUMNS}

    def apply(self, event: Event, tokens: int) -> None:
        """Advance by one of the session's own events, whose block has that many tokens."""
        match event:
            case SessionTitled(title=title):
                self.title = title
            case ParentNamed(parent=parent):
                self.parent_id = None
                self.parent_namespace, self.parent_key = parent.namespace, parent.key
                self.parent_call = parent.tool_call_id
            case SystemPromptSet(text=text):
                before, self.system_tokens = self.system_tokens, estimate_text(text)
                self.grow(self.system_tokens - before)
            case ToolsSet(tools=tools):
                before = self.tools_tokens
                self.tools_tokens = estimate_text(str(tools)) if tools else 0
                self.grow(self.tools_tokens - before)
            case BlocksRetracted():
                self.view_tokens = None
            case BlockAppended(block=block) if block.kind in UNSENT_KINDS:
                pass
            case BlockAppended(block=block) if (
                block.kind is BlockKind.USER and not self.first_prompt
            ):
                self._record_prompt(block.text)
                self.grow(tokens)
            case _:
                self.grow(tokens)

    def _record_prompt(self, text: str) -> None:
        # What an agent inserted before a prompt, or instead of one, stands in tags.
        text = _LEADING_TAGS.sub("", text[:_TAGGED_CHARS])
        if not text.lstrip().startswith("<"):
            self.first_prompt = " ".join(text[: 4 * _PROMPT_CHARS].split())[:_PROMPT_CHARS] or None

    def reset_attempts(self) -> None:
        """Forget earlier decisions and failures, which did not include the new event."""
        self.settled, self.attempts, self.failed_at = 0, 0, None

    def grow(self, tokens: int) -> None:
        if self.view_tokens is not None:
            self.view_tokens += tokens

    def is_served(self, lineage: str) -> bool:
        """Check whether views follow the lineage: `main`, or until it begins the recorded one."""
        if lineage == MAIN_LINEAGE:
            return True
        if lineage != RECORDED_LINEAGE or self.served_lineage == MAIN_LINEAGE:
            return False
        return self.forked_at is None or self.served_lineage == RECORDED_LINEAGE

    def apply_decision(self, lineage: str, event: Event, *, is_futile: bool = False) -> None:
        """Advance by one event of a lineage; `is_futile` means that nothing can be gained."""
        if not self.is_served(lineage):
            return
        self.served_lineage, self.served_version = lineage, event.originator_version
        match event:
            case BoundaryActivated() | CompactionReverted():
                self.view_tokens = None
                self.settled = DECIDED
            case CompactionRequested(lease_s=lease_s):
                if self.leased_until is not None:
                    # The earlier worker must have died.
                    self._fail(event)
                self.leased_until = add_seconds(format_timestamp(event.timestamp), lease_s or 0.0)
            case CompactBoundary():
                self.leased_until, self.settled = None, DECIDED
                self.attempts, self.failed_at = 0, None
            case CompactionFailed(stood_in=None, cancelled=cancelled):
                self.leased_until = None
                if is_futile:
                    self.settled = DECIDED
                elif not cancelled:
                    self._fail(event)
            case _:
                pass

    def _fail(self, event: Event) -> None:
        self.attempts, self.failed_at = self.attempts + 1, format_timestamp(event.timestamp)

    def apply_newest(self, event: Event, state: SessionState) -> None:
        """Record the newest event and the state after it, however many events came before.

        Records, which no decision reads, may come after it.
        """
        self.last_activity = format_timestamp(event.timestamp)
        self.turns = state.turn
        self.blocks = state.blocks
        self.tokens = state.tokens
        self.open_calls = len(state.open_calls)
        self.closed = int(state.closed)
        self.wake_at = format_timestamp(datetime.fromisoformat(state.wake)) if state.wake else None

    def find_due_time(self, rules: IdleRules, limit: int) -> datetime | None:
        """Return when idle compaction may begin; None if there is nothing to do.

        `limit` is the limit of all sessions; 0 if each has its own.
        """
        if self.open_calls or self.closed or self.settled or self.parent_key is not None:
            return None
        # The worker may die: until its lease has ended, it counts as an attempt.
        begun = self.attempts + (self.leased_until is not None)
        if begun >= rules.attempts or self._is_small(rules, limit):
            return None
        rests_from = max(self.last_activity, self.wake_at or "")
        due_at = datetime.fromisoformat(rests_from) + timedelta(seconds=rules.idle_time_s)
        if self.leased_until:
            due_at = max(due_at, datetime.fromisoformat(self.leased_until))
        if self.failed_at:
            pause = timedelta(seconds=rules.backoff_s * 2 ** (self.attempts - 1))
            due_at = max(due_at, datetime.fromisoformat(self.failed_at) + pause)
        return due_at

    def _is_small(self, rules: IdleRules, limit: int) -> bool:
        share = compute_utilization(self.in_use, limit or self.context_limit)
        return share < rules.least_utilization

    def find_idle_state(
        self,
        now: datetime,
        rules: IdleRules,
        limit: int,
        *,
        is_prepared: bool,
        is_served: bool,
    ) -> tuple[IdleState, datetime | None]:
        """Return the state at `now`, and its end if time alone ends it.

        The session may have a boundary that is prepared, and one that is served.
        """
        due_at = self.find_due_time(rules, limit)
        leased_until, wake_at = (
            datetime.fromisoformat(time) if time else None
            for time in (self.leased_until, self.wake_at)
        )
        is_leased = leased_until is not None and leased_until > now
        # A lease that has ended is a failed attempt, as its worker died.
        failures = self.attempts + (leased_until is not None and not is_leased)
        states = (
            (self.closed, IdleState.CLOSED, None),
            (self.parent_key is not None, IdleState.SUB_AGENT, None),
            (is_leased, IdleState.RUNNING, leased_until),
            (self.open_calls > 0, IdleState.WAITING, None),
            (wake_at is not None and wake_at > now, IdleState.ASLEEP, wake_at),
            (is_prepared, IdleState.PREPARED, None),
            (self.settled == DECIDED and is_served, IdleState.COMPACTED, None),
            (self.settled, IdleState.NO_GAIN, None),
            (failures >= rules.attempts, IdleState.GIVEN_UP, None),
            (self._is_small(rules, limit), IdleState.SMALL, None),
            (due_at is not None and due_at <= now, IdleState.DUE, None),
        )
        found = ((state, ends) for holds, state, ends in states if holds)
        return next(found, (IdleState.RESTING, due_at))


SESSION_COLUMNS = tuple(field.name for field in fields(SessionRow))


def compute_utilization(tokens: int, limit: int) -> float:
    return round(tokens / limit, 4)


_LEVELS = ((0.5, "low"), (0.8, "medium"), (1.0, "high"))


def name_level(share: float) -> str:
    return next((word for most, word in _LEVELS if share <= most), "over")
