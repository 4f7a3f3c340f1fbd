"""An agent at work as Hypothesis has it: steps that any session can hold, and what it was sent."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from databases import memory_folder
from every_policy import fitted
from hypothesis import strategies as st

import cutbank
from cutbank import (
    Block,
    HistoryView,
    LoopOptions,
    StoredSession,
    ToolCall,
    ToolResult,
    Usage,
    end_turn,
)
from cutbank.adapters.analysis.run_replay import read_recording
from cutbank.adapters.runtime.agent_loop import AgentLoop
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.compaction_events import CompactBoundary, Summary
from cutbank.domain.errors import ContextOverflowError, InvalidPositionError, OrphanToolResultError
from cutbank.domain.ranges import Ranges

TOO_LONG = {"type": "error", "error": {"type": "invalid", "message": "prompt is too long"}}

SIZES = st.sampled_from((1, 30, 200, 600, 1_500))
BACK = st.integers(0, 12)
FAR = st.integers(0, 60)
WORK = st.tuples(st.just("work"), st.lists(SIZES, max_size=3), st.booleans())
ASK = st.tuples(st.just("ask"), SIZES)
ODD = st.one_of(
    st.tuples(st.just("pin"), FAR),
    st.tuples(st.just("unpin"), FAR),
    st.tuples(st.just("hide"), BACK, st.sampled_from((None, "gone"))),
    st.tuples(st.just("retract"), FAR),
    st.tuples(st.just("rewind"), FAR),
    st.tuples(st.just("system"), SIZES),
    st.tuples(st.just("tools"), SIZES),
    st.tuples(st.just("rest"), st.integers(1, 4_000)),
    st.tuples(st.just("end")),
    st.tuples(st.just("fork")),
)
LATE = st.one_of(
    st.tuples(st.just("start")), st.tuples(st.just("answer"), SIZES), st.tuples(st.just("abandon"))
)
STEPS = st.lists(
    st.sampled_from((ASK, WORK, WORK, WORK, WORK, ODD, LATE)).flatmap(lambda step: step),
    min_size=15,
    max_size=40,
)
"""What an agent and its user do; `work` is a call of the model, its tools and their results."""


@dataclass
class Time:
    """A clock that stands still until it is told otherwise."""

    now: datetime = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Agent:
    """Does what it is told in a session, by a loop, and remembers what each call was sent."""

    session: StoredSession
    how: dict[str, Any]
    time: Time
    usage: float | None = None
    """What its provider makes of a token; None where it reports nothing."""
    sent: list[HistoryView] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    starts: bool = False
    """Whether the next call of the model leaves one open."""
    forks: int = 0
    number: int = 0

    def __post_init__(self) -> None:
        self.loop: AgentLoop = self.session.loop(**self.how)

    def do(self, steps: Sequence[tuple[Any, ...]]) -> None:
        for step in steps:
            self.time.now += timedelta(seconds=1)
            self._do(*step)

    def _do(self, what: str, *much: Any) -> None:
        session = self.session
        match what, *much:
            case "ask", size:
                session.append(Block.user(self._text("question", size)))
            case "work", sizes, at_first:
                self.work(sizes, told_at_first=at_first)
            case (("pin" | "retract"), back):
                self._try(getattr(session, what), back)
            case "unpin", back:
                self._try(session.pin, back, keep=False)
            case "hide", back, text:
                self._try(session.hide, back, replacement=text)
            case "rewind", back if session.position > back + 1:
                self._try_rewind(session.position - back)
            case "system", size:
                session.configure(system_prompt=self._text("system", size))
            case "tools", size:
                session.configure(tools=[{"name": "look", "description": self._text("tool", size)}])
            case "rest", seconds:
                self.time.now += timedelta(seconds=seconds)
            case ("end",):
                end_turn(session)
            case ("start",):
                self.starts = True
            case "answer", size if self.waiting:
                text = self._text("late", size)
                self._end(ToolResult(tool_call_id=self.waiting.pop(0), content=text))
            case ("abandon",) if self.waiting:
                self._end(self.waiting.pop(0))
            case ("fork",):
                self.forks += 1
                self.session = session.fork(f"fork {self.forks}")
                self.loop = self.session.loop(**self.how)
            case _:
                pass

    def work(self, sizes: Sequence[int], *, told_at_first: bool) -> None:
        """A call of the model; it answers in words, and calls a tool for each of these sizes."""
        self.number += 1
        self.time.now += timedelta(seconds=1)
        # The loop looks at its clock when a position has just been stored.
        self.session.append(Block.note("about to ask"))
        view = self._prepared()
        self.sent.append(view)
        if told_at_first:
            self._told(view)
        names = [f"call {self.number}.{n}" for n in range(len(sizes) + self.starts)]
        self.waiting += names[len(sizes) :]
        self.starts = False
        self.session.append(
            Block.assistant(self._text("answer", 40), message_id=f"message {self.number}"),
            *(
                ToolCall(
                    tool_call_id=name,
                    name="look",
                    arguments='{"at": "src/part.py"}',
                    message_id=f"message {self.number}",
                )
                for name in names
            ),
        )
        if not told_at_first:
            self._told(view)
        for name, size in zip(names, sizes, strict=False):
            text = self._text("result", size)
            self.session.append(ToolResult(tool_call_id=name, content=text))

    def _prepared(self) -> HistoryView:
        view = self.loop.prepare()
        if view.tokens <= self.loop.request.limit:
            return view
        try:
            return self.loop.handle_overflow(TOO_LONG)
        except ContextOverflowError:
            return self.session.view(lineage=self.loop.lineage)

    def _told(self, view: HistoryView) -> None:
        usage = None
        if self.usage is not None:
            usage = Usage(input=round(view.tokens * self.usage), output=12)
        self.loop.record_call(view, usage=usage, call_id=f"c{self.number}")

    def _text(self, of: str, size: int) -> str:
        text = f"{of} {self.session.position}: "
        return text + ("the clay under the bank slid " * (size // 29 + 1))[:size]

    def _try(self, what: Any, back: int, **more: Any) -> None:
        with suppress(InvalidPositionError):  # no block stands there, or it was taken back before
            what(max(1, self.session.position - back), **more)

    def _end(self, answer: ToolResult | str) -> None:
        with suppress(OrphanToolResultError):  # the call was taken back, or this is a fork
            if isinstance(answer, str):
                self.session.cancel_tool_call(answer, "interrupted")
            else:
                self.session.append(answer)

    def _try_rewind(self, to: int) -> None:
        with suppress(InvalidPositionError):  # nothing stands behind it
            self.session.retract(after=to)


@contextmanager
def at_work(
    policy: str,
    limit: int,
    *,
    usage: float | None = None,
    gain: float | None = None,
    **options: Any,
) -> Iterator[Agent]:
    """An agent with a database of its own, and a policy that fits the limit."""
    time, compaction = Time(), {} if gain is None else {"minimum_gain": gain}
    known = Settings.model_validate({"compaction": compaction})
    with (
        memory_folder() as folder,
        cutbank.open(Path(folder, "live.db"), clock=time, settings=known) as store,
    ):
        how = {"policy": fitted(policy, limit), "limit": limit, "options": LoopOptions(**options)}
        yield Agent(store.session("live"), how, time, usage=usage)


def essence(view: HistoryView, blocks: Ranges) -> dict[str, Any]:
    """All that a view shows and all that was decided of it, but for the numbers of decisions.

    What is decided about positions without a block shows nowhere: a refusal that the loop records
    between two boundaries of one request is one.
    """
    return {
        "tokens": view.tokens,
        "system": view.system_prompt,
        "tools": view.tool_definitions,
        "entries": [(entry.position, entry.text, entry.tokens) for entry in view.entries],
        "boundary": view.boundary and drawn(view.boundary, blocks),
        "summary": view.summary and written(view.summary, blocks),
    }


def drawn(boundary: CompactBoundary, blocks: Ranges) -> dict[str, Any]:
    numbers = {"originator_id", "originator_version", "timestamp", "previous"}
    return {
        **boundary.model_dump(exclude=numbers),
        "kept": boundary.kept & blocks,
        "after": max((at for at in blocks if at <= boundary.after), default=0),
    }


def written(summary: Summary, blocks: Ranges) -> dict[str, Any]:
    numbers = {"originator_id", "originator_version", "timestamp", "boundary"}
    return {**summary.model_dump(exclude=numbers), "covers": summary.covers & blocks}


def live_blocks(session: StoredSession) -> Ranges:
    return Ranges.of(one.position for one in read_recording(session).log.values() if one.tokens)
