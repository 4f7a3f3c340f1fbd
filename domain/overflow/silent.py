"""Recognizes overflows without an error: the model answered, but the prompt was too long."""

from typing import Final

from ..session_events import Usage
from .overflow import Overflow

_OVERFLOW_STOP_REASONS: Final = {
    "model_context_window_exceeded": "anthropic",
    "model_length": "mistral",
    "error_limit": "cohere",
    "context_length_exceeded": None,
    "context_window_exceeded": None,
}
"""Stop reasons of a model without room left, with the provider that uses each."""
_FINISHED_STOP_REASONS: Final = frozenset(
    {"stop", "end_turn", "completed", "complete", "tool_use", "tool_calls"}
)
_CUT_SHORT_STOP_REASONS: Final = frozenset({"length", "max_tokens"})
_FULL_SHARE: Final = 0.99


def recognize_silent_overflow(
    *, stop_reason: str | None = None, usage: Usage | None = None, window: int | None = None
) -> Overflow | None:
    """Return an overflow that was answered like any other request, or None.

    There are three kinds: the model stopped because its window was full; it finished although more
    was sent than the window holds (z.ai); or the server cut the prompt to the window's size, so
    that there was no room for an answer (Xiaomi MiMo).
    """
    reason = (stop_reason or "").strip().lower()
    sent = usage.context if usage else None
    if reason in _OVERFLOW_STOP_REASONS:
        return Overflow(
            message=f"the model stopped: {reason}",
            rule=f"stop:{reason}",
            provider=_OVERFLOW_STOP_REASONS[reason],
            tokens=sent,
            limit=window,
        )
    if not window or window < 0 or usage is None:
        return None
    read = (usage.input or 0) + (usage.cache_read or 0)
    if reason in _FINISHED_STOP_REASONS and read > window:
        said = f"the model answered {read:,} tokens, of which its window holds {window:,}"
    elif reason in _CUT_SHORT_STOP_REASONS and usage.output == 0 and read >= window * _FULL_SHARE:
        said = f"the prompt of {read:,} tokens left no room for an answer in a window of {window:,}"
    else:
        return None
    return Overflow(message=said, rule="usage", tokens=sent, limit=window)
