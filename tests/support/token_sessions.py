"""Recordings of invented sessions, for replays that go by tokens."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from hypothesis import strategies as st

from cutbank.adapters.storage.event_log.event_mapper import estimate_event_tokens
from cutbank.domain.blocks import Block, Media, Text, ToolCall, ToolResult
from cutbank.domain.ranges import Ranges
from cutbank.domain.session import Session
from cutbank.domain.session_events import Ends
from cutbank.projections.replay.recording import Recording
from cutbank.projections.view_content import RecordedEvent

ASKED = "asked"
"""The message of some prompts, and of results that came with them."""
Act = tuple[str, int]
"""What happens, and how much of it."""


class Talk:
    """A session that is told act by act, and recorded as a store would."""

    def __init__(self) -> None:
        self.session = Session.open("default", "s", clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
        self._names = 0

    def user(self, n: int) -> None:
        self.session.append(Block.user("u" * n, message_id=None if n % 3 else ASKED))

    def developer(self, n: int) -> None:
        self.session.append(Block.developer("d" * (n % 200)))

    def note(self, n: int) -> None:
        self.session.append(Block.note("n" * n))

    def assistant(self, n: int) -> None:
        self._message(n, calls=0)

    def calls(self, n: int) -> None:
        """Up to three side by side; who does not answer them leaves them open."""
        self._message(n, calls=1 + n % 3)

    def result(self, n: int) -> None:
        """The newest open call is answered first, or the oldest."""
        waiting = list(self.session.state.open_calls)
        if waiting:
            name = waiting[-1 if n % 2 else 0]
            message = ASKED if n % 10 == 0 else f"results {n % 4}" if n % 5 == 0 else None
            text = Text(text="r" * n)
            picture = Media(type="image", mime="image/png", data=b"1")
            content = (text, picture, picture) if n % 7 == 0 else text.text
            result = ToolResult(tool_call_id=name, content=content, message_id=message)
            # Some were too large when they came.
            self.session.append(result, Ends(head=n // 2, tail=n // 4) if n % 6 == 0 else None)

    def large(self, n: int) -> None:
        self.result(10 * n)

    def abandon(self, n: int) -> None:
        for name in list(self.session.state.open_calls)[: n % 2]:
            self.session.cancel_tool_call(name, "s" * n)

    def system(self, n: int) -> None:
        self.session.set_system_prompt("p" * n)

    def tools(self, n: int) -> None:
        self.session.set_tools(["t" * n])

    def settings(self, n: int) -> None:
        self.session.set_request_settings({"n": n})

    def call(self, n: int) -> None:
        """Told of by an event of its own, sometimes late."""
        position = max(0, self.session.version - (n % 3))
        call = {"call_id": self._name(), "position": position, "model": "m"}
        if n % 5 == 0:
            # Of a model that makes more of its prompts than the estimate, or of some less.
            call["usage"] = {"input": 300 + self.session.state.tokens * (n % 4 + 2) // 3}
        self.session.record_call(call)

    def end(self, _: int) -> None:
        self.session.end_turn()

    def pin(self, _: int) -> None:
        self.session.pin(Ranges.span(1, 2))

    def hide(self, _: int) -> None:
        self.session.hide(Ranges.span(1, 2))

    def retract(self, _: int) -> None:
        self.session.retract(Ranges.span(self.session.version, self.session.version), {})

    def _message(self, n: int, calls: int) -> None:
        message = self._name() if n % 4 else None
        if n % 3:
            self.session.append(Block.thinking("h" * n, message_id=message))
        if n % 5 or not calls:
            self.session.append(Block.assistant("a" * n, message_id=message))
        for _ in range(calls):
            call = ToolCall(tool_call_id=self._name(), name="tool", message_id=message)
            self.session.append(call)

    def _name(self) -> str:
        self._names += 1
        return f"name {self._names}"

    def recorded(self) -> Recording:
        log = [
            RecordedEvent(event.originator_version, event, estimate_event_tokens(event), b"")
            for event in self.session.collect_events()
        ]
        return Recording(key="s", namespace="default", log=log)


def recording_of(acts: Sequence[Act]) -> Recording:
    talk = Talk()
    for verb, n in acts:
        act: Callable[[int], None] = getattr(talk, verb)
        act(n)
    return talk.recorded()


SIZES = st.integers(1, 2_000) | st.integers(1, 200) | st.integers(1, 8_000)
OFTEN = ("user", "assistant", "calls", "result", "result", "result", "call")
SELDOM = ("large", "developer", "note", "abandon", "system", "tools", "settings", "end")
acts = st.lists(st.tuples(st.sampled_from(OFTEN * 3 + SELDOM), SIZES), min_size=20, max_size=80)
