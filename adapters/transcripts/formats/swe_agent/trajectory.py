"""The steps of a trajectory: what they repeat of the history is said by where it stands there."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..content.filling import value_at
from ..content.holes import WORTH_IT, At, Same, rest_of
from ..json_lines import Line
from ..reading.entry_steps import digest_of
from ..reading.fields import MalformedError, json_name
from ..reading.pieces import Pieces, Whence
from ..steps import Aside, Step
from .history import NAME

STEP = "trajectory/step"
"""The type of a step that is kept as it came."""
PROMPTS = ("query", "messages")
"""What the model was sent at a step: the history again, up to there."""
_SAID: dict[str, At] = {"response": ("content",), "thought": ("content",), "action": ("action",)}
"""Fields of a step, and of the model's message that holds the same."""
_FIRST_TEXT: At = ("content", 0, "text")


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A call that the history leaves without an answer, and the message that made it."""

    message: int
    call: str


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The steps of a run whose history was read."""

    history: list[Any]
    lost: set[int]
    """Messages that nothing can refer to."""
    document: Line
    last: Unanswered | None

    def read(self, step: Any, number: int, spoken: int | None) -> Iterator[Step]:
        """A step without its prompt, and without what the message `spoken` and its answer hold."""
        if not isinstance(step, dict):
            raise MalformedError(f"expected an object, got {json_name(step)}")
        kept = {name: value for name, value in step.items() if name not in PROMPTS}
        observed = kept.get("observation")
        pieces = Pieces()
        if spoken is not None:
            for name, there in _SAID.items():
                pieces.same += self._stretch(kept, name, spoken, there)
        if self.last and self.last.message == spoken and isinstance(observed, str) and observed:
            pieces.result(self.last.call, [(observed, ("observation",))])
            key = f"step:{number}:{digest_of(self.document.json(kept))}"
            whence = Whence(NAME, key, self.document, number, id=f"step:{number}")
            yield from pieces.appends(whence, kept)
            return
        if spoken is not None:
            pieces.same += self._answer(kept, spoken + 1)
        raw = self.document.json(rest_of(kept, pieces.same))
        yield Aside(f"step:{number}:{digest_of(raw)}", STEP, raw, line=number)

    def _answer(self, step: dict[str, Any], message: int) -> list[Same]:
        whole = self._stretch(step, "observation", message, ("content",))
        return whole or self._stretch(step, "observation", message, _FIRST_TEXT)

    def _stretch(self, step: dict[str, Any], name: str, message: int, there: At) -> list[Same]:
        text = step.get(name)
        if not isinstance(text, str) or len(text) < WORTH_IT:
            return []
        if message > len(self.history) or message in self.lost:
            return []
        try:
            whole = value_at(self.history[message - 1], there)
        except (LookupError, TypeError):
            return []
        if not isinstance(whole, str) or (start := whole.find(text)) < 0:
            return []
        return [Same((name,), message, there, (start, start + len(text)))]
