"""Reads the steps of a trajectory; what they repeat of the history becomes references."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..content.fill_entry import get_at_path
from ..content.placeholders import MIN_COPY_CHARACTERS, EarlierValue, JsonPath, make_remainder
from ..json_lines import SourceLine
from ..reading.entry_blocks import EntryBlocks, EntryLocation
from ..reading.entry_steps import digest_text
from ..reading.fields import MalformedError, json_name
from ..steps import ImportStep, RawEntry
from .history_reader import FORMAT_NAME

STEP_ENTRY = "trajectory/step"
"""The type of a step that is kept unchanged."""
PROMPT_FIELDS = ("query", "messages")
"""The model's prompt at a step, which repeats the history."""
_REPEATED_FIELDS: dict[str, JsonPath] = {
    "response": ("content",),
    "thought": ("content",),
    "action": ("action",),
}
"""Fields of a step, and the fields of the model's message with the same value."""
_FIRST_TEXT: JsonPath = ("content", 0, "text")


@dataclass(frozen=True, slots=True)
class UnansweredCall:
    """A call without an answer in the history, and its message."""

    message_number: int
    call_id: str


@dataclass(frozen=True, slots=True)
class TrajectorySteps:
    """The steps of a run whose history was read."""

    history: list[Any]
    unkept_messages: set[int]
    """Messages that cannot be referred to."""
    document: SourceLine
    unanswered_call: UnansweredCall | None

    def read(self, step: Any, number: int, spoken: int | None) -> Iterator[ImportStep]:
        """Yield a step without its prompt, and without what the message `spoken` and its answer
        hold.
        """
        if not isinstance(step, dict):
            raise MalformedError(f"expected an object, got {json_name(step)}")
        kept = {name: value for name, value in step.items() if name not in PROMPT_FIELDS}
        observed = kept.get("observation")
        pieces = EntryBlocks()
        if spoken is not None:
            for name, there in _REPEATED_FIELDS.items():
                pieces.earlier_values += self._find_stretch(kept, name, spoken, there)
        if (
            self.unanswered_call
            and self.unanswered_call.message_number == spoken
            and isinstance(observed, str)
            and observed
        ):
            pieces.add_tool_result(self.unanswered_call.call_id, [(observed, ("observation",))])
            key = f"step:{number}:{digest_text(self.document.to_json(kept))}"
            whence = EntryLocation(FORMAT_NAME, key, self.document, number, id=f"step:{number}")
            yield from pieces.make_appends(whence, kept)
            return
        if spoken is not None:
            pieces.earlier_values += self._find_answer(kept, spoken + 1)
        raw = self.document.to_json(make_remainder(kept, pieces.earlier_values))
        yield RawEntry(f"step:{number}:{digest_text(raw)}", STEP_ENTRY, raw, line=number)

    def _find_answer(self, step: dict[str, Any], message: int) -> list[EarlierValue]:
        whole = self._find_stretch(step, "observation", message, ("content",))
        return whole or self._find_stretch(step, "observation", message, _FIRST_TEXT)

    def _find_stretch(
        self, step: dict[str, Any], name: str, message: int, there: JsonPath
    ) -> list[EarlierValue]:
        text = step.get(name)
        if not isinstance(text, str) or len(text) < MIN_COPY_CHARACTERS:
            return []
        if message > len(self.history) or message in self.unkept_messages:
            return []
        try:
            whole = get_at_path(self.history[message - 1], there)
        except (LookupError, TypeError):
            return []
        if not isinstance(whole, str) or (start := whole.find(text)) < 0:
            return []
        return [EarlierValue((name,), message, there, (start, start + len(text)))]
