"""Requests that are made of views, each checked by the rules of its provider."""

import json
from collections.abc import Iterator
from typing import Any

from provider_rules import check_anthropic, check_openai_chat, check_openai_responses

from cutbank.domain.blocks import Media, ToolCall, ToolResult
from cutbank.projections.history_view import HistoryView
from cutbank.projections.rendering.catalog import render_view

PROVIDERS = {
    "anthropic": check_anthropic,
    "anthropic-cached": check_anthropic,
    "openai-chat": check_openai_chat,
    "openai-responses": check_openai_responses,
}
PNG = Media(type="image", mime="image/png", data=b"\x89PNG")
PDF = Media(type="document", mime="application/pdf", data=b"%PDF", name="plan.pdf")


def iter_requests(view: HistoryView) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield each provider's name, body and body as JSON; the provider takes the body."""
    for name, check in PROVIDERS.items():
        body = render_view(view, name)
        assert check(body) == [], name
        yield name, body, json.dumps(body)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def spoken(role: str, words: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}


def call(tool_call_id: str, name: str = "read", **more: Any) -> ToolCall:
    return ToolCall(tool_call_id=tool_call_id, name=name, **more)


def result(tool_call_id: str, content: Any = "done", **more: Any) -> ToolResult:
    return ToolResult(tool_call_id=tool_call_id, content=content, **more)
