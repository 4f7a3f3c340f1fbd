"""Makes windows that any policy must handle: empty, tiny, huge, pinned, open, far too full.

The texts of blocks have the size that the blocks claim, so that policies may measure them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from ..blocks import AnyBlock, Block, BlockKind, ToolCall, ToolResult
from ..compaction_events import Trigger
from ..item import WindowItem
from ..ranges import Ranges
from ..token_estimate import CHARS_PER_TOKEN
from ..window import Window

_LIMIT = 20_000
_LIMITS = (_LIMIT, 500, 0)
"""Context sizes: enough for a policy's defaults, almost nothing, and unknown."""


@dataclass
class _SampleHistory:
    """A history that is built block by block."""

    items: list[WindowItem] = field(default_factory=list)
    turn: int = 0

    def add_user(self, tokens: int, *, is_pinned: bool = False) -> None:
        self.turn += 1
        self._add(Block(kind=BlockKind.USER, text=_make_text(tokens)), tokens, is_pinned=is_pinned)

    def add_assistant(self, tokens: int, *, is_unfinished: bool = False) -> None:
        block = Block(kind=BlockKind.ASSISTANT, text=_make_text(tokens))
        self._add(block, tokens, is_unfinished=is_unfinished)

    def add_calls(self, *sizes: int | None) -> None:
        """Add one message of calls, and a result for each; None leaves a call open."""
        message, calls = f"message-{len(self.items)}", []
        self._add(Block(kind=BlockKind.THINKING, text=_make_text(40), message_id=message), 40)
        for number, size in enumerate(sizes):
            call = ToolCall(tool_call_id=f"{message}-{number}", name="read", message_id=message)
            calls.append((call.tool_call_id, size, len(self.items) + 1))
            self._add(call, 20, is_open=size is None)
        for id, size, position in calls:
            if size is not None:
                result = ToolResult(tool_call_id=id, content=_make_text(size))
                self._add(result, size, call=position)

    def _add(self, block: AnyBlock, tokens: int, *, call: int | None = None, **is_: bool) -> None:
        position = len(self.items) + 1
        self.items.append(WindowItem(position, block, self.turn, tokens, call, **is_))

    def make_window(self, limit: int = _LIMIT, trigger: Trigger = Trigger.MANUAL) -> Window:
        in_use = sum(item.tokens for item in self.items) + 100
        pinned = Ranges.of(item.position for item in self.items if item.is_pinned)
        items, after = list(self.items), len(self.items)
        return Window(items, after, limit=limit, trigger=trigger, in_use=in_use, pinned=pinned)


def iter_sample_windows() -> Iterator[tuple[str, Window]]:
    """Yield every sample with its description, for each trigger and each context size."""
    for (name, talk), limit, trigger in product(_iter_sample_histories(), _LIMITS, Trigger):
        held = f"a limit of {limit:,}" if limit else "no known limit"
        yield f"{name}, {held}, by {trigger}", talk.make_window(limit, trigger)


def _iter_sample_histories() -> Iterator[tuple[str, _SampleHistory]]:
    yield "an empty window", _SampleHistory()
    tiny = _SampleHistory()
    tiny.add_user(5)
    tiny.add_assistant(5)
    yield "a tiny window", tiny
    yield "a long window", make_long_history(12)
    yield "a huge window", make_long_history(130)
    pinned, open_ = _SampleHistory(), _SampleHistory()
    for _ in range(30):
        pinned.add_user(900, is_pinned=True)
    yield "only pinned blocks", pinned
    open_.add_calls(*[None] * 900)
    yield "only open calls", open_
    prompt, result = make_long_history(2), make_long_history(2)
    prompt.add_user(2 * _LIMIT)
    yield "a prompt larger than the limit", prompt
    result.add_user(20)
    result.add_calls(2 * _LIMIT, 30)
    yield "a last result larger than the limit", result
    broken = make_long_history(9)
    broken.add_user(50)
    broken.add_assistant(9_000, is_unfinished=True)
    yield "an answer that was broken off", broken


def make_long_history(turns: int) -> _SampleHistory:
    """Return turns with prompts, thinking, parallel calls, results and answers."""
    talk = _SampleHistory()
    for turn in range(turns):
        talk.add_user(80)
        talk.add_calls(*[400, 900, 150][: turn % 4])
        talk.add_calls(600)
        talk.add_assistant(250)
    return talk


def _make_text(tokens: int) -> str:
    return ("silt and clay. " * (tokens * CHARS_PER_TOKEN // 15 + 1))[: tokens * CHARS_PER_TOKEN]
