"""Stores a session as columns of numbers: all that a policy needs if it depends on tokens alone."""

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import accumulate, pairwise
from sys import byteorder
from typing import Any, TypeAlias

from ...domain.blocks import ASSISTANT_KINDS, PROMPT_KINDS, Kind
from ...domain.event import Event
from ...domain.item import MessageRuns
from ...domain.session_events import (
    BlockAppended,
    BlockPinned,
    BlocksHidden,
    BlocksRetracted,
    BlockUnpinned,
    ModelCalled,
    RequestSettingsSet,
    SessionOpened,
    SystemPromptSet,
    ToolCalled,
    ToolsSet,
    TurnStarted,
)
from ...domain.token_estimate import estimate_text
from ..history_view import HistoryFold
from ..view_entry import ViewEntry
from .recording import Recording

TRACE_KINDS = tuple(Kind)
"""The kinds by their numbers in a trace."""
TRACE_FORMAT = f"4 {byteorder}"
"""The format of packed columns, which have the memory's byte order."""

_Column: TypeAlias = "array[int]"


def _make_int_column(type_code: str) -> _Column:
    return field(default_factory=lambda: array(type_code))


def _make_float_column() -> "array[float]":
    return field(default_factory=lambda: array("d"))


@dataclass(frozen=True)
class SessionTrace:
    """The visible blocks and the calls of the model, in order, as numbers.

    Blocks are identified by index. A column that refers to another block holds its index plus one,
    or 0 for none. Tokens are the recording's, estimated or calibrated.
    """

    position: _Column = _make_int_column("I")
    kind: _Column = _make_int_column("B")
    running: _Column = _make_int_column("Q")
    """Tokens of all blocks before each; the last entry is the total."""
    message: _Column = _make_int_column("I")
    """A number for each message id; 0 for none."""
    text: _Column = _make_int_column("I")
    """Characters of a result's whole text; 0 for any other block."""
    shown: _Column = _make_int_column("I")
    """Characters of it that show."""
    ratio: "array[float]" = _make_float_column()
    """The model's tokens for one estimated token of a block."""
    call: _Column = _make_int_column("I")
    """For a result, its call."""
    answer: _Column = _make_int_column("I")
    """For a call, its result."""
    before: _Column = _make_int_column("I")
    """The previous piece of the same message."""
    behind: _Column = _make_int_column("I")
    """The next piece of the same message."""
    parted: _Column = _make_int_column("I")
    """Index of the first block whose pair or message reaches this one or further; its own if a cut
    here separates nothing."""
    awaited: _Column = _make_int_column("I")
    """The last result of any call up to here."""
    unanswered: _Column = _make_int_column("I")
    """Indices of the calls that were never answered."""
    first_prompts: _Column = _make_int_column("I")
    """Indices of the user's blocks in the first turn."""
    number: _Column = _make_int_column("I")
    """The number of each call of the model."""
    sees: _Column = _make_int_column("I")
    upto: _Column = _make_int_column("I")
    """How many blocks it sees if none has left."""
    whole: _Column = _make_int_column("Q")
    """Tokens of its prompt if none has left."""
    said: _Column = _make_int_column("Q")
    """Tokens of the whole log up to there, including blocks that no model is sent."""
    answered: _Column = _make_int_column("I")
    """Position of the newest block of a model before it."""
    turn: _Column = _make_int_column("I")
    """The current turn."""
    resets: _Column = _make_int_column("I")
    """Indices of the calls right after a change of system prompt, tools or settings, whose prompts
    no cache holds."""

    @cached_property
    def shrinking_calls(self) -> list[int]:
        """Indices of the calls whose whole prompt is smaller than the one before."""
        return [call for call, (one, other) in enumerate(pairwise(self.whole), 1) if other < one]

    @cached_property
    def kinds(self) -> bytes:
        """The column of kinds as bytes, for searches."""
        return self.kind.tobytes()

    def count_tokens(self, index: int) -> int:
        return self.running[index + 1] - self.running[index]

    def count_request(self, call: int) -> int:
        """Return the tokens of a call's prompt apart from blocks and summary."""
        return self.whole[call] - self.running[self.upto[call]]

    def pack(self) -> bytes:
        columns: list[array[Any]] = [getattr(self, one.name) for one in fields(self)]
        return array("Q", map(len, columns)).tobytes() + b"".join(c.tobytes() for c in columns)

    @classmethod
    def unpack(cls, kept: bytes) -> "SessionTrace":
        """Return the trace that `pack` wrote in the same format."""
        trace = cls()
        columns: list[array[Any]] = [getattr(trace, one.name) for one in fields(cls)]
        lengths, kept_of = array("Q"), memoryview(kept)
        at = lengths.itemsize * len(columns)
        lengths.frombytes(kept_of[:at])
        for column, length in zip(columns, lengths, strict=True):
            end = at + column.itemsize * length
            column.frombytes(kept_of[at:end])
            at = end
        return trace


@dataclass(frozen=True, slots=True)
class NeedsFullReplay:
    """Why a session or a policy needs a full replay."""

    reason: str


def make_trace(recording: Recording) -> SessionTrace | NeedsFullReplay:
    """Return a session's trace; or why it has none, if sizes alone do not determine its view."""
    for recorded in recording.log:
        if reason := _explain_full_replay(recorded.event, recorded.position):
            return NeedsFullReplay(f"#{recorded.position}: {reason}")
    entries = list(HistoryFold(sees=lambda _: None).apply_all(recording.log).entries.values())
    runs = MessageRuns()
    for entry in entries:
        if runs.add(entry.position, entry.block, entry.call) < runs.newest:
            # It shows further up, so that views do not grow only at their end.
            return NeedsFullReplay(f"#{entry.position}: a result came late")
    trace = SessionTrace()
    _add_blocks(trace, entries, {one.position: one.ratio for one in recording.log})
    _add_ties(trace, entries)
    _add_calls(trace, recording)
    return trace


def _explain_full_replay(event: Event, position: int) -> str:
    match event:
        case BlocksRetracted():
            return "blocks were taken back"
        case BlockPinned() | BlockUnpinned():
            return "blocks were pinned"
        case BlocksHidden():
            return "blocks were hidden"
        case SessionOpened() if position > 1 or event.fork:
            return "the session is a fork"
        case _:
            return ""


def _add_blocks(
    trace: SessionTrace, entries: Sequence[ViewEntry], ratios: Mapping[int, float]
) -> None:
    numbers = {kind: number for number, kind in enumerate(TRACE_KINDS)}
    names: dict[str, int] = {}
    trace.running.extend(accumulate((entry.tokens for entry in entries), initial=0))
    for index, entry in enumerate(entries):
        name, kind = entry.block.message_id, entry.block.kind
        trace.position.append(entry.position)
        trace.kind.append(numbers[kind])
        trace.message.append(names.setdefault(name, len(names) + 1) if name else 0)
        is_result = kind is Kind.TOOL_RESULT
        trace.text.append(len(entry.block.text) if is_result else 0)
        trace.shown.append(len(entry.text) if is_result else 0)
        trace.ratio.append(ratios[entry.position])
        if entry.turn == 1 and kind in PROMPT_KINDS:
            trace.first_prompts.append(index)


def _add_ties(trace: SessionTrace, entries: Sequence[ViewEntry]) -> None:
    """Add which blocks stay together, and which cuts would separate them."""
    index_of = {entry.position: index for index, entry in enumerate(entries)}
    nothing = [0] * len(entries)
    for column in (trace.call, trace.answer, trace.before, trace.behind):
        column.extend(nothing)
    pieces: dict[int, int] = {}
    for index, entry in enumerate(entries):
        if entry.call is not None and (asked := index_of.get(entry.call)) is not None:
            trace.call[index], trace.answer[asked] = asked + 1, index + 1
        if name := trace.message[index]:
            if name in pieces:
                trace.before[index], trace.behind[pieces[name]] = pieces[name] + 1, index + 1
            pieces[name] = index
    trace.awaited.extend(accumulate(trace.answer, max))
    trace.parted.extend(_iter_parted(trace))
    called = TRACE_KINDS.index(Kind.TOOL_CALL)
    trace.unanswered.extend(
        index
        for index, (kind, answer) in enumerate(zip(trace.kind, trace.answer, strict=True))
        if kind == called and not answer
    )


def _iter_parted(trace: SessionTrace) -> Iterator[int]:
    begun: deque[tuple[int, int]] = deque()
    for index, (answer, behind) in enumerate(zip(trace.answer, trace.behind, strict=True)):
        while begun and begun[0][1] < index:
            begun.popleft()
        yield begun[0][0] if begun else index
        if reach := max(answer, behind):
            begun.append((index, reach - 1))


def _add_calls(trace: SessionTrace, recording: Recording) -> None:
    calls, calibration = recording.calls, recording.calibration
    seen = [*accumulate((call.last_seen_position for call in calls), max)]
    trace.number.extend(call.number for call in calls)
    trace.sees.extend(seen)
    said = [*accumulate((recorded.tokens for recorded in recording.log), initial=0)]
    trace.said.extend(said[sees] for sees in seen)
    index = system = tools = answered = taken = turn = 0
    for call, sees in enumerate(seen):
        is_reset = False
        for recorded in recording.log[taken:sees]:
            match recorded.event:
                case SystemPromptSet(text=text):
                    system, is_reset = estimate_text(text), True
                case ToolsSet(tools=definitions):
                    tools, is_reset = estimate_text(str(definitions)), True
                case RequestSettingsSet():
                    is_reset = True
                case TurnStarted(turn=started):
                    turn = started
                case ModelCalled() | ToolCalled():
                    answered = recorded.position
                case BlockAppended(block=block) if block.kind in ASSISTANT_KINDS:
                    answered = recorded.position
                case _:
                    pass
        taken = sees
        index = bisect_right(trace.position, sees, lo=index)
        trace.upto.append(index)
        besides = system + tools if calibration is None else calibration.overhead_by_call[call]
        trace.whole.append(besides + trace.running[index])
        trace.answered.append(answered)
        trace.turn.append(turn)
        if is_reset:
            trace.resets.append(call)
