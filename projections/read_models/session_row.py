"""A session's row in the index, folded from its events and from those of the lineage it serves."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Self

from ...domain.blocks import UNSENT_KINDS
from ...domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE
from ...domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionFailed,
    CompactionRequested,
    CompactionReverted,
)
from ...domain.context_limit import DEFAULT_LIMIT, LimitSource
from ...domain.event import Event
from ...domain.session import SessionState
from ...domain.session_events import (
    BlockAppended,
    BlocksRetracted,
    ParentNamed,
    SessionOpened,
    SessionTitled,
    SystemPromptSet,
    ToolsSet,
)
from ...domain.token_estimate import estimate_text
from .timestamps import add_seconds, format_timestamp

_PROMPT_CHARS = 200
"""Characters of the first prompt that are kept."""


@dataclass(frozen=True, slots=True)
class SessionRowSettings:
    """What rows are reckoned with besides events."""

    idle_seconds: float
    """How long after its last event a session is due for idle compaction."""
    context_limit: int
    """Tokens of context that utilisation is a share of; 0 where each session has its own limit."""
    least_share: float
    """Of that limit; a view that fills less of it is not worth compacting."""
    attempts: int
    """How often in a row an idle compaction may fail, until something new is said."""
    backoff_seconds: float
    """How long after a failed attempt it is due again; twice as long after each further one."""


@dataclass(slots=True)
class SessionRow:
    """One session as it stands at some notification of the log."""

    id: int
    """The notification that opened it."""
    stream: str
    namespace: str
    key: str
    name: str = ""
    """What people see: the title, or else the key."""
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
    """Size of its own events and bodies as JSON and text; a fork copies nothing."""
    tokens: int = 0
    view_tokens: int | None = 0
    """None, while rows are made, where the view has to be measured anew."""
    system_tokens: int = 0
    tools_tokens: int = 0
    utilisation: float = 0.0
    open_calls: int = 0
    closed: int = 0
    served_lineage: str | None = None
    """The lineage that views are served from, once it has events of its own; in a branch that was
    imported what its source recorded, from the first on."""
    served_version: int = 0
    """Its newest version; at first what a fork inherits."""
    steady_from: int = 0
    """From this position on the view only grew; before it, it was another one."""
    reported: int | None = None
    """Tokens of the newest prompt on this view, as a provider counted it; None where none did."""
    in_use: int = 0
    """Tokens of context as far as is known: as reported, and what came since; else as estimated."""
    has_calls: int = 0
    """Whether a call of a model was recorded."""
    context_limit: int = DEFAULT_LIMIT
    """Tokens that a prompt may have, as far as the log and the model tell."""
    limit_source: str = LimitSource.DEFAULT.value
    wake_at: str | None = None
    """When the agent said that it goes on by itself."""
    leased_until: str | None = None
    """How long somebody is at compacting it, at most; None where nobody is."""
    settled: int = 0
    """Whether its compaction was decided upon since something was said: there is nothing to do."""
    attempts: int = 0
    """How many compactions in a row have failed since something was said."""
    failed_at: str | None = None
    """When the newest of them did."""
    project: str | None = None
    """Where its agent worked."""
    first_prompt: str | None = None
    """The beginning of what a person asked for first."""
    model: str | None = None
    """Whose call was the newest that named one."""
    said_at: str | None = None
    """When the newest block was said, by its source's clock where it was imported."""
    due_at: str | None = None
    """From when on it may be compacted in idle hours; None where nothing is to be done."""

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
            # What a fork shares was said elsewhere.
            view_tokens=None if fork else 0,
            served_lineage=RECORDED_LINEAGE if fork and fork.lineage == RECORDED_LINEAGE else None,
            served_version=fork.lineage_version if fork else 0,
            steady_from=fork.position if fork else 0,
        )

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        return cls(**row)

    @property
    def columns(self) -> dict[str, Any]:
        self.name = self.title or self.key
        return {name: getattr(self, name) for name in SESSION_COLUMNS}

    def apply(self, event: Event, tokens: int) -> int:
        """Advance by one of the session's own events; returns what its view grew by."""
        match event:
            case SessionTitled(title=title):
                self.title = title
            case ParentNamed(parent=parent):
                self.parent_id = None
                self.parent_namespace, self.parent_key = parent.namespace, parent.key
                self.parent_call = parent.tool_call_id
            case SystemPromptSet(text=text):
                self.steady_from = event.originator_version
                before, self.system_tokens = self.system_tokens, estimate_text(text)
                self.grow(self.system_tokens - before)
            case ToolsSet(tools=tools):
                self.steady_from = event.originator_version
                before = self.tools_tokens
                self.tools_tokens = estimate_text(str(tools)) if tools else 0
                self.grow(self.tools_tokens - before)
            case BlocksRetracted():
                self.steady_from = event.originator_version
                self.view_tokens = None
            case BlockAppended(block=block) if block.kind in UNSENT_KINDS:
                pass
            case _:
                return self.grow(tokens)
        return 0

    def record_prompt(self, text: str) -> None:
        """Take note of what a person asked; what an agent put in their mouth begins with a tag."""
        if self.first_prompt is None and not text.lstrip().startswith("<"):
            self.first_prompt = " ".join(text[: 4 * _PROMPT_CHARS].split())[:_PROMPT_CHARS] or None

    def reset_attempts(self) -> None:
        """Something happened in it: what was decided, or failed, was about less than this."""
        self.settled, self.attempts, self.failed_at = 0, 0, None

    def grow(self, tokens: int) -> int:
        if self.view_tokens is not None:
            self.view_tokens += tokens
        return tokens

    def is_served(self, lineage: str) -> bool:
        """Whether views follow that lineage: `main`, or until it is opened what was recorded."""
        if lineage == MAIN_LINEAGE:
            return True
        if lineage != RECORDED_LINEAGE or self.served_lineage == MAIN_LINEAGE:
            return False
        return self.forked_at is None or self.served_lineage == RECORDED_LINEAGE

    def apply_decision(self, lineage: str, event: Event, *, is_futile: bool = False) -> None:
        """Take note of one event of a lineage; one that `is_futile` says nothing can be gained."""
        if not self.is_served(lineage):
            return
        self.served_lineage, self.served_version = lineage, event.originator_version
        match event:
            case BoundaryActivated() | CompactionReverted():
                self.steady_from = max(self.steady_from, event.effective_from)
                self.view_tokens = None
                self.settled = 1
            case CompactionRequested(lease_s=lease_s):
                if self.leased_until is not None:
                    # Whoever was at it before died of it, for all that is known.
                    self._fail(event)
                self.leased_until = add_seconds(format_timestamp(event.timestamp), lease_s or 0.0)
            case CompactBoundary():
                self.leased_until, self.settled = None, 1
                self.attempts, self.failed_at = 0, None
            case CompactionFailed(stood_in=None, cancelled=cancelled):
                self.leased_until = None
                if is_futile:
                    self.settled = 1
                elif not cancelled:
                    self._fail(event)
            case _:
                pass

    def _fail(self, event: Event) -> None:
        self.attempts, self.failed_at = self.attempts + 1, format_timestamp(event.timestamp)

    def apply_newest(self, event: Event, state: SessionState) -> None:
        """What the newest event and the state after it say, however many came before."""
        self.position = event.originator_version
        self.last_activity = format_timestamp(event.timestamp)
        self.turns = state.turn
        self.blocks = state.blocks
        self.tokens = state.tokens
        self.open_calls = len(state.open_calls)
        self.closed = int(state.closed)
        self.wake_at = format_timestamp(datetime.fromisoformat(state.wake)) if state.wake else None

    def measure(self, settings: SessionRowSettings) -> None:
        """Utilisation, when it is known what is in use, and when the session is due."""
        self.utilisation = compute_utilization(
            self.in_use, settings.context_limit or self.context_limit
        )
        self.due_at = self._compute_due_at(settings)

    def _compute_due_at(self, settings: SessionRowSettings) -> str | None:
        if self.open_calls or self.closed or self.settled or self.parent_key is not None:
            return None
        # Whoever is at it may die of it: until it has ended, that is an attempt like others.
        begun = self.attempts + (self.leased_until is not None)
        if begun >= settings.attempts or self.utilisation < settings.least_share:
            return None
        rests_from = max(self.last_activity, self.wake_at or "")
        moments = [add_seconds(rests_from, settings.idle_seconds)]
        if self.leased_until:
            moments.append(self.leased_until)
        if self.failed_at:
            pause = settings.backoff_seconds * 2 ** (self.attempts - 1)
            moments.append(add_seconds(self.failed_at, pause))
        return max(moments)


SESSION_COLUMNS = tuple(field.name for field in fields(SessionRow))


def compute_utilization(tokens: int, limit: int) -> float:
    return round(tokens / limit, 4)


_LEVELS = ((0.5, "low"), (0.8, "medium"), (1.0, "high"))


def name_level(share: float) -> str:
    """A share of the context as a word."""
    return next((word for most, word in _LEVELS if share <= most), "over")
