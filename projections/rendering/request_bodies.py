"""Types the request bodies that views render to, as the providers' clients accept them.

The types of the clients are looked up by type checkers alone: where a client is not installed,
its fields are of any type.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Required, TypedDict

if TYPE_CHECKING:
    from anthropic.types import MessageParam, ToolUnionParam
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
    from openai.types.responses import ResponseInputItemParam, ToolParam


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
