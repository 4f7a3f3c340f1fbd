"""Asks at the end of the request that was served, so that the provider reads it from its cache."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from ....domain.blocks import NOT_SENT, Kind, ToolCall
from ....domain.item import Item
from ....domain.summaries.extraction.wording import folded
from ....domain.summaries.summariser import Material
from . import prompts
from .chunks import Count

MOST_HANDLES = 200
"""Blocks that are named by handle at most: the request itself names none."""
_GLANCE = 60

_NOT_FOR_A_SUMMARY = {"stream", "stream_options", "response_format", "text", "n", "stop", "model"}
_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(frozen=True)
class ServedRequest:
    """A request as it was served, with the task at its end."""

    body: dict[str, Any]

    def settings(self, most: int) -> ModelSettings:
        """Settings that send this body in the place of the one that pydantic-ai makes."""
        thought = self.body.get("thinking")
        budget = thought.get("budget_tokens", 0) if isinstance(thought, dict) else 0
        limit = most + (budget if isinstance(budget, int) else 0)
        return ModelSettings(max_tokens=limit, max_retries=0, extra_body=self.body)


def format_for(model: Model) -> str | None:
    """The format in which a model's own client takes a served request; None for other providers."""
    names = [kind.__name__ for kind in type(model).__mro__]
    return next((spoken for name, spoken in _FORMATS.items() if name in names), None)


_FORMATS = {
    "AnthropicModel": "anthropic",
    "OpenAIResponsesModel": "openai-responses",
    "OpenAIChatModel": "openai-chat",
}


def served_request(material: Material, spoken: str, task: str) -> ServedRequest | None:
    """What was served in that format, and the task; None where nothing was."""
    if material.served is None:
        return None
    served = material.served(spoken)
    body = {key: deepcopy(value) for key, value in served.items() if key not in _NOT_FOR_A_SUMMARY}
    for limit in _OUTPUT_LIMITS:
        body.pop(limit, None)
    _ADDED[spoken](body, _instruction(material, task))
    return ServedRequest(body)


def tokens(request: ServedRequest, count: Count) -> int:
    """The size of a request, amply."""
    return count(str(request.body))


def placeholder() -> ModelRequest:
    """Stands for the messages, which the body of the request replaces."""
    return ModelRequest.user_text_prompt("-")


_STOP_HERE = (
    "Stop the work here. This message comes from the program around the agent. The conversation "
    "above is now the record that the following rules speak of; they replace all earlier ones for "
    "this one answer."
)
_ONLY_THE_BEGINNING = (
    "Only the beginning of the conversation leaves; what follows it stays, word for word, and "
    "needs no notes."
)


def _instruction(material: Material, task: str) -> str:
    """The rules and the task, and the handles of the blocks that leave."""
    leaving = [item for item in material.gone if item.kind not in NOT_SENT]
    last = leaving[-1] if leaving else None
    until = f" The last block that leaves is: {_glance(last)}." if last else ""
    return "\n\n".join(
        [
            _STOP_HERE,
            prompts.SYSTEM,
            f"{_ONLY_THE_BEGINNING}{until} These are the handles of blocks that leave:",
            "\n".join(_index(leaving)),
            task,
        ]
    )


def _index(items: Sequence[Item]) -> list[str]:
    """Blocks by their handles: all that users said, and of the others the newest."""
    spoken = [item for item in items if item.kind is Kind.USER]
    others = [item for item in items if item.kind is not Kind.USER]
    chosen = [*spoken[-MOST_HANDLES:], *others[-max(MOST_HANDLES - len(spoken), 0) :]]
    return [_glance(item) for item in sorted(chosen, key=lambda item: item.position)]


def _glance(item: Item) -> str:
    block = item.block
    said = f"{block.name} {block.arguments}" if isinstance(block, ToolCall) else block.text
    words = folded(said[: 4 * _GLANCE])
    return f"#{item.position} {item.kind}: {words[:_GLANCE]}{'…' if len(words) > _GLANCE else ''}"


def _to_anthropic(body: dict[str, Any], text: str) -> None:
    """As the user's words, after the newest block, up to which the cache is read.

    The choice of tools stays as it was: another one would make the provider read all messages anew.
    """
    messages: list[dict[str, Any]] = body["messages"]
    last = messages[-1]
    if isinstance(last["content"], str):
        last["content"] = [{"type": "text", "text": last["content"]}]
    content: list[dict[str, Any]] = last["content"]
    for block in reversed(content):
        if block.get("type") not in {"thinking", "redacted_thinking"}:
            block["cache_control"] = {"type": "ephemeral"}
            break
    task = {"type": "text", "text": text}
    if last["role"] == "user":
        content.append(task)
    else:
        messages.append({"role": "user", "content": [task]})


def _to_chat(body: dict[str, Any], text: str) -> None:
    body["messages"].append({"role": "user", "content": text})
    if body.get("tools"):
        body["tool_choice"] = "none"


def _to_responses(body: dict[str, Any], text: str) -> None:
    content = [{"type": "input_text", "text": text}]
    body["input"].append({"type": "message", "role": "user", "content": content})
    if body.get("tools"):
        body["tool_choice"] = "none"


_ADDED = {"anthropic": _to_anthropic, "openai-chat": _to_chat, "openai-responses": _to_responses}
