"""Every way to say a view, by name."""

from collections.abc import Callable
from dataclasses import dataclass

from ...domain.errors import InvalidSettingError
from ..view_content import ViewContent
from . import (
    anthropic_cached,
    anthropic_messages,
    neutral,
    openai_chat,
    openai_responses,
    summary_message,
)
from .sendable_json import JsonObject


@dataclass(frozen=True, slots=True)
class Renderer:
    """One format, and the version of what it makes of a view.

    A version says the same view the same way for ever: whatever changes a single byte of a
    rendering raises it, since calls record which version they were sent in.
    """

    name: str
    version: int
    render: Callable[[ViewContent], JsonObject]

    @property
    def label(self) -> str:
        """Name and version as a recorded call keeps them: `anthropic/1`."""
        return f"{self.name}/{self.version}"


RenderFunction = Callable[[ViewContent], JsonObject]


def _escape_foreign_summaries(render: RenderFunction) -> RenderFunction:
    """The same, where no text but the view's summary reads as one."""
    return lambda view: summary_message.escape_foreign_summaries(render(view), view)


PLAIN_RENDERERS: dict[str, RenderFunction] = {
    "anthropic": anthropic_messages.render,
    "anthropic-cached": anthropic_cached.render,
    "openai-chat": openai_chat.render,
    "openai-responses": openai_responses.render,
}
"""Version 1 of what providers are sent, where a pasted summary reads like the view's own."""

RENDERERS = {
    "neutral": Renderer("neutral", 1, neutral.render),
    **{
        name: Renderer(name, 2, _escape_foreign_summaries(render))
        for name, render in PLAIN_RENDERERS.items()
    },
}
"""The newest version of each format."""

RENDERERS_BY_LABEL = {
    renderer.label: renderer
    for renderer in (
        *RENDERERS.values(),
        *(Renderer(name, 1, render) for name, render in PLAIN_RENDERERS.items()),
    )
}
"""Every version, so that what was sent in an older one can still be said to the byte."""


def render_view(view: ViewContent, name: str) -> JsonObject:
    """Say a view in the format of that name, or in that version of it: `anthropic/1`."""
    renderer = RENDERERS.get(name) or RENDERERS_BY_LABEL.get(name)
    if renderer is None:
        raise InvalidSettingError(f"no format {name!r}; there are {', '.join(RENDERERS)}")
    return renderer.render(view)
