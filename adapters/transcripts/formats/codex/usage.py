"""What a rollout tells of model calls: token counts after each of them, often more than once."""

from dataclasses import dataclass, replace
from typing import Any

from .....domain.session_events import Usage
from ..reading.fields import Item, take_optional
from ..steps import Call


@dataclass(frozen=True, slots=True)
class Count:
    """What a token count says."""

    usage: Usage
    size: int | None
    """Tokens in context after it, as Codex counts them."""
    is_call: bool
    """Whether it tells of a call that was not told before."""

    @property
    def is_of_a_call(self) -> bool:
        """Whether anything was sent: after a compaction, a count tells only how much is left."""
        usage = self.usage
        return bool((usage.input or 0) + (usage.cache_read or 0) + (usage.output or 0))


@dataclass(slots=True)
class Meter:
    """Tells a new call from one that was told before: only a new one changes the total."""

    model: str | None = None
    answer: str | None = None
    """The first item that a model wrote since its last call was counted."""
    size: int | None = None
    """Tokens in context at the last count."""
    total: Item | None = None
    window: int | None = None
    """Tokens that the model's context holds, as Codex last said."""

    def read(self, last: Item, total: Item | None, within: str) -> Count:
        """Take in a count of the last call and of all of them."""
        count = Count(
            usage=_usage(last, within),
            size=_count(last, "total_tokens", within),
            is_call=total is None or total != self.total,
        )
        self.total = total
        self.size = count.size or self.size
        return count if count.is_of_a_call else replace(count, is_call=False)

    def note_window(self, told: Item, within: str) -> None:
        """Take in the size of the context, where this says it."""
        self.window = _count(told, "model_context_window", within) or self.window

    def call(self, id: str, key: str, usage: Usage, time: str | None) -> Call:
        """The call that the last answer came of."""
        fields: dict[str, Any] = {
            "call_id": id,
            "model": self.model,
            "usage": usage,
            "source_time": time,
        }
        if self.window:
            fields["context_window"] = self.window
        before, self.answer = self.answer, None
        return Call(f"{key}:call", fields, before=before)


def _usage(usage: Item, within: str) -> Usage:
    """The provider's report; what Codex calls input are all tokens of the prompt."""
    read = _count(usage, "input_tokens", within)
    cached = _count(usage, "cached_input_tokens", within)
    written = _count(usage, "cache_write_input_tokens", within)
    uncached = None if read is None else max(0, read - (cached or 0) - (written or 0))
    return Usage(
        input=uncached,
        cache_read=cached,
        cache_write=written,
        output=_count(usage, "output_tokens", within),
        reasoning=_count(usage, "reasoning_output_tokens", within),
    )


def _count(usage: Item, field: str, within: str) -> int | None:
    return take_optional(usage, field, int, within)
