"""Lists every format for rendering a view, by name and version."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Required, TypedDict

from ...domain.errors import InvalidSettingError
from ..rendering import anthropic_messages, neutral, openai_chat, openai_responses
from ..view_content import ViewContent
from .sendable import JsonObject
from .summary_message import escape_foreign_summaries

if TYPE_CHECKING:
    from anthropic.types import MessageParam, ToolUnionParam
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
    from openai.types.responses import ResponseInputItemParam, ToolParam


RenderFunction = Callable[[ViewContent], JsonObject]


@dataclass(frozen=True, slots=True)
class Renderer:
    """One format, and the version of its output.

    A version renders equal views to equal bytes forever: any change of output needs a new version,
    because calls record the version they were sent in.
    """

    name: str
    version: int
    render: RenderFunction

    @property
    def label(self) -> str:
        """Name and version as a recorded call keeps them: `anthropic/1`."""
        return f"{self.name}/{self.version}"


def _escape_foreign_summaries(render: RenderFunction) -> RenderFunction:
    """Return a renderer in which no text but the view's summary reads as one."""
    return lambda view: escape_foreign_summaries(render(view), view)


PLAIN_RENDERERS: dict[str, RenderFunction] = {
    "anthropic": anthropic_messages.render,
    "anthropic-cached": anthropic_messages.render_cached,
    "openai-chat": openai_chat.render,
    "openai-responses": openai_responses.render,
}
"""Version 1 of the providers' formats, in which a pasted summary looks like the view's own."""

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
"""Every version, so that old requests can be rendered again byte for byte."""

_BUILT_IN = frozenset(RENDERERS)


def render_view(view: ViewContent, name: str) -> JsonObject:
    """Render a view in a format, or in a version of it such as `anthropic/1`."""
    renderer = RENDERERS.get(name) or RENDERERS_BY_LABEL.get(name)
    if renderer is None:
        raise InvalidSettingError(f"no format {name!r}; there are {', '.join(RENDERERS)}")
    return renderer.render(view)


def register_renderer(name: str, render: RenderFunction, *, version: int = 1) -> None:
    """Render views by `name` with a function of your own, which gets the view and returns JSON.

    Calls record `name/version`, and audits render old requests again: give a new version if the
    output changes. The function's output may be any JSON object. Raises InvalidSettingError for a
    name with other characters than letters, digits, `-`, `_` and `.`, or that is taken.
    """
    if not re.fullmatch(r"[\w.-]+", name) or version < 1:
        raise InvalidSettingError(
            f"a renderer cannot be called {name!r}, version {version}: use letters, digits, '-',"
            " '_' and '.', and versions from 1"
        )
    renderer = Renderer(name, version, render)
    known = RENDERERS_BY_LABEL.setdefault(renderer.label, renderer)
    if known.render is not render or name in _BUILT_IN:
        raise InvalidSettingError(f"a renderer is called {renderer.label} already: choose another")
    newest = RENDERERS.get(name)
    if newest is None or newest.version < version:
        RENDERERS[name] = renderer


class AnthropicRequest(TypedDict, total=False):
    """The arguments of `Anthropic().messages.create`.

    `model` and `max_tokens` are those of `session.configure(request_settings=...)`; without them
    there, they are missing from the body, and the call has to give them.
    """

    model: Required[str]
    max_tokens: Required[int]
    messages: "Required[Iterable[MessageParam]]"
    system: str
    tools: "Iterable[ToolUnionParam]"


class OpenAIChatRequest(TypedDict, total=False):
    """The arguments of `OpenAI().chat.completions.create`."""

    model: str
    messages: "Iterable[ChatCompletionMessageParam]"
    tools: "Iterable[ChatCompletionToolUnionParam]"
    max_completion_tokens: int
    temperature: float


class OpenAIResponsesRequest(TypedDict, total=False):
    """The arguments of `OpenAI().responses.create`."""

    model: str
    instructions: str
    input: "list[ResponseInputItemParam]"
    tools: "Iterable[ToolParam]"
    max_output_tokens: int
    temperature: float
