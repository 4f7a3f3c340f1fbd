"""Every way to say a view, by name."""

from collections.abc import Callable
from dataclasses import dataclass

from ...domain.errors import InvalidSettingError
from ..history_view import HistoryView
from . import anthropic_cached, anthropic_messages, neutral, openai_chat, openai_responses
from .sendable import JsonObject


@dataclass(frozen=True, slots=True)
class Renderer:
    """One format, and the version of what it makes of a view.

    A version says the same view the same way for ever: whatever changes a single byte of a
    rendering raises it, since calls record which version they were sent in.
    """

    name: str
    version: int
    render: Callable[[HistoryView], JsonObject]

    @property
    def label(self) -> str:
        """Name and version as a recorded call keeps them: `anthropic/1`."""
        return f"{self.name}/{self.version}"


RENDERERS = {
    renderer.name: renderer
    for renderer in (
        Renderer("neutral", 1, neutral.render),
        Renderer("anthropic", 1, anthropic_messages.render),
        Renderer("anthropic-cached", 1, anthropic_cached.render),
        Renderer("openai-chat", 1, openai_chat.render),
        Renderer("openai-responses", 1, openai_responses.render),
    )
}


def render(view: HistoryView, name: str) -> JsonObject:
    """Say a view in the format of that name."""
    if name not in RENDERERS:
        raise InvalidSettingError(f"no format {name!r}; there are {', '.join(RENDERERS)}")
    return RENDERERS[name].render(view)
