"""Asks at the end of the served request, so that the provider reads it from its cache."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from ...domain.blocks import UNSENT_KINDS, BlockKind, ToolCall
from ...domain.item import WindowItem
from ...domain.summaries.clean_text import fold_lines
from ...domain.summaries.summarizer import Material
from ..models import prompts

MAX_HANDLES = 200
"""The most blocks that are listed by handle, since the served request has no handles."""
_GLANCE = 60

_EXCLUDED_FIELDS = frozenset(
    {"stream", "stream_options", "response_format", "text", "n", "stop", "model"}
    | {"max_tokens", "max_completion_tokens", "max_output_tokens"}
)


def make_settings(body: dict[str, Any], most: int) -> ModelSettings:
    """Return settings that replace pydantic-ai's body with a served request."""
    thought = body.get("thinking")
    budget = thought.get("budget_tokens", 0) if isinstance(thought, dict) else 0
    limit = most + (budget if isinstance(budget, int) else 0)
    return ModelSettings(max_tokens=limit, max_retries=0, extra_body=body)


def find_request_format(model: Model) -> str | None:
    """Return the format in which the model's client takes a served request; None for others."""
    names = [kind.__name__ for kind in type(model).__mro__]
    return next((spoken for name, spoken in _FORMATS.items() if name in names), None)


_FORMATS = {
    "AnthropicModel": "anthropic",
    "OpenAIResponsesModel": "openai-responses",
    "OpenAIChatModel": "openai-chat",
}


def make_served_request(material: Material, spoken: str, task: str) -> dict[str, Any] | None:
    """Return the served request with the task at its end; None if nothing was served."""
    if material.served_prompt is None:
        return None
    served = material.served_prompt(spoken)
    body = {key: deepcopy(value) for key, value in served.items() if key not in _EXCLUDED_FIELDS}
    _ADD_TASK[spoken](body, _make_instruction(material, task))
    return body


_STOP_HERE = (
    "Stop the work here. This message comes from the program around the agent. The conversation "
    "above is now the record that the following rules speak of; they replace all earlier ones for "
    "this one answer."
)
_ONLY_THE_BEGINNING = (
    "Only the beginning of the conversation leaves; what follows it stays, word for word, and "
    "needs no notes."
)


def _make_instruction(material: Material, task: str) -> str:
    """Return the rules, the task, and the handles of the blocks that leave."""
    leaving = [item for item in material.removed_items if item.kind not in UNSENT_KINDS]
    last = leaving[-1] if leaving else None
    until = f" The last block that leaves is: {_describe_item(last)}." if last else ""
    return "\n\n".join(
        [
            _STOP_HERE,
            prompts.NOTES_SYSTEM_PROMPT,
            f"{_ONLY_THE_BEGINNING}{until} These are the handles of blocks that leave:",
            "\n".join(_index_blocks(leaving)),
            task,
        ]
    )


def _index_blocks(items: Sequence[WindowItem]) -> list[str]:
    """Return blocks by handle: all user messages, and the newest of the others."""
    spoken = [item for item in items if item.kind is BlockKind.USER]
    others = [item for item in items if item.kind is not BlockKind.USER]
    chosen = [*spoken[-MAX_HANDLES:], *others[-max(MAX_HANDLES - len(spoken), 0) :]]
    return [_describe_item(item) for item in sorted(chosen, key=lambda item: item.position)]


def _describe_item(item: WindowItem) -> str:
    block = item.block
    said = f"{block.name} {block.arguments}" if isinstance(block, ToolCall) else block.text
    words = fold_lines(said[: 4 * _GLANCE])
    return f"#{item.position} {item.kind}: {words[:_GLANCE]}{'…' if len(words) > _GLANCE else ''}"


def _add_to_anthropic(body: dict[str, Any], text: str) -> None:
    """Add the text as the user's, after the newest block, up to which the cache is read.

    The tool choice stays, as changing it would invalidate the cached messages.
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


def _add_to_chat(body: dict[str, Any], text: str) -> None:
    body["messages"].append({"role": "user", "content": text})
    _forbid_tools(body)


def _add_to_responses(body: dict[str, Any], text: str) -> None:
    content = [{"type": "input_text", "text": text}]
    body["input"].append({"type": "message", "role": "user", "content": content})
    _forbid_tools(body)


def _forbid_tools(body: dict[str, Any]) -> None:
    if body.get("tools"):
        body["tool_choice"] = "none"


_ADD_TASK = {
    "anthropic": _add_to_anthropic,
    "openai-chat": _add_to_chat,
    "openai-responses": _add_to_responses,
}
