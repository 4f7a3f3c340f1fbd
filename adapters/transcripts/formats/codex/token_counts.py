"""Reads model calls from token counts, which may repeat."""

from dataclasses import dataclass, replace
from typing import Any

from .....domain.session_events import Usage
from ..reading.fields import JsonDict, get_field
from ..steps import ReportedCall


@dataclass(frozen=True, slots=True)
class TokenCount:
    usage: Usage
    context_tokens: int | None
    """Tokens in context after it, by Codex's count."""
    is_new_call: bool

    @property
    def has_prompt(self) -> bool:
        """Whether a prompt was sent: after a compaction, a count has only the remaining tokens."""
        usage = self.usage
        return bool((usage.input or 0) + (usage.cache_read or 0) + (usage.output or 0))


@dataclass(slots=True)
class UsageTracker:
    """A tracker that tells new calls from repeated counts: only a new call changes the total."""

    model: str | None = None
    first_answer_id: str | None = None
    """The first item that a model wrote since its last call was counted."""
    context_tokens: int | None = None
    """Tokens in context at the last count."""
    total: JsonDict | None = None
    window: int | None = None
    """The size of the model's context, from the last report."""

    def read_count(self, last: JsonDict, total: JsonDict | None, within: str) -> TokenCount:
        """Read a count of the last call and of all calls."""
        count = TokenCount(
            usage=_parse_usage(last, within),
            context_tokens=_parse_count(last, "total_tokens", within),
            is_new_call=total is None or total != self.total,
        )
        self.total = total
        self.context_tokens = count.context_tokens or self.context_tokens
        return count if count.has_prompt else replace(count, is_new_call=False)

    def note_window(self, told: JsonDict, within: str) -> None:
        """Update the size of the context, if reported."""
        self.window = _parse_count(told, "model_context_window", within) or self.window

    def make_call(self, id: str, key: str, usage: Usage, time: str | None) -> ReportedCall:
        """Return the call of the last answer."""
        fields: dict[str, Any] = {
            "call_id": id,
            "model": self.model,
            "usage": usage,
            "source_time": time,
        }
        if self.window:
            fields["context_window"] = self.window
        before, self.first_answer_id = self.first_answer_id, None
        return ReportedCall(f"{key}:call", fields, first_answer_id=before)


def _parse_usage(usage: JsonDict, within: str) -> Usage:
    """Parse the provider's report; Codex's input tokens are all tokens of the prompt."""
    read = _parse_count(usage, "input_tokens", within)
    cached = _parse_count(usage, "cached_input_tokens", within)
    written = _parse_count(usage, "cache_write_input_tokens", within)
    uncached = None if read is None else max(0, read - (cached or 0) - (written or 0))
    return Usage(
        input=uncached,
        cache_read=cached,
        cache_write=written,
        output=_parse_count(usage, "output_tokens", within),
        reasoning=_parse_count(usage, "reasoning_output_tokens", within),
    )


def _parse_count(usage: JsonDict, field: str, within: str) -> int | None:
    return get_field(usage, field, int, within)
