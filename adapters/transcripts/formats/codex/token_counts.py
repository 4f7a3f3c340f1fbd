"""What a rollout tells of model calls: token counts after each of them, often more than once."""

from dataclasses import dataclass, replace
from typing import Any

from .....domain.session_events import Usage
from ..reading.fields import JsonDict, get_field
from ..steps import ReportedCall


@dataclass(frozen=True, slots=True)
class TokenCount:
    """What a token count says."""

    usage: Usage
    context_tokens: int | None
    """Tokens in context after it, as Codex counts them."""
    is_new_call: bool
    """Whether it tells of a call that was not told before."""

    @property
    def has_prompt(self) -> bool:
        """Whether anything was sent: after a compaction, a count tells only how much is left."""
        usage = self.usage
        return bool((usage.input or 0) + (usage.cache_read or 0) + (usage.output or 0))


@dataclass(slots=True)
class UsageTracker:
    """Tells a new call from one that was told before: only a new one changes the total."""

    model: str | None = None
    first_answer_id: str | None = None
    """The first item that a model wrote since its last call was counted."""
    context_tokens: int | None = None
    """Tokens in context at the last count."""
    total: JsonDict | None = None
    window: int | None = None
    """Tokens that the model's context holds, as Codex last said."""

    def read_count(self, last: JsonDict, total: JsonDict | None, within: str) -> TokenCount:
        """Take in a count of the last call and of all of them."""
        count = TokenCount(
            usage=_parse_usage(last, within),
            context_tokens=_parse_count(last, "total_tokens", within),
            is_new_call=total is None or total != self.total,
        )
        self.total = total
        self.context_tokens = count.context_tokens or self.context_tokens
        return count if count.has_prompt else replace(count, is_new_call=False)

    def note_window(self, told: JsonDict, within: str) -> None:
        """Take in the size of the context, where this says it."""
        self.window = _parse_count(told, "model_context_window", within) or self.window

    def make_call(self, id: str, key: str, usage: Usage, time: str | None) -> ReportedCall:
        """The call that the last answer came of."""
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
    """The provider's report; what Codex calls input are all tokens of the prompt."""
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
