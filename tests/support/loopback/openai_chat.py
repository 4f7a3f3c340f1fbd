"""OpenAI's Chat Completions API."""

import json
from collections.abc import Iterator
from typing import Any

from .answers import Body, Refusal, Refuses, Request, Says, Stop, Tokens, event, in_parts
from .refusals import refuse_as_openai

_STOPS = {
    Stop.END: "stop",
    Stop.LENGTH: "length",
    Stop.TOOL: "tool_calls",
    Stop.REFUSAL: "content_filter",
}


class OpenAIChat:
    stream_type = "text/event-stream; charset=utf-8"

    def takes(self, request: Request) -> bool:
        return request.path.endswith("/chat/completions")

    def wants_stream(self, request: Request) -> bool:
        return bool(request.body.get("stream"))

    def whole(self, says: Says, request: Request) -> Body:
        message: Body = {"role": "assistant", "content": says.text or None, "refusal": None}
        if says.calls:
            message["tool_calls"] = _list_calls(says)
        choice = {"index": 0, "message": message, "logprobs": None}
        body = _head(says, request, "chat.completion")
        body["choices"] = [{**choice, "finish_reason": _STOPS[says.stop]}]
        usage = _usage(says.usage)
        return body if usage is None else {**body, "usage": usage}

    def pieces(self, says: Says, request: Request) -> Iterator[bytes]:
        head = _head(says, request, "chat.completion.chunk")

        def chunk(delta: Body, finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return event({**head, "choices": [choice]})

        yield chunk({"role": "assistant", "content": "", "refusal": None})
        for part in in_parts(says.text):
            yield chunk({"content": part})
        for index, call in enumerate(_list_calls(says)):
            yield chunk({"tool_calls": [{"index": index, **call}]})
        yield chunk({}, _STOPS[says.stop])
        usage = _usage(says.usage)
        if usage is not None and (request.body.get("stream_options") or {}).get("include_usage"):
            yield event({**head, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    def refusal(self, refuses: Refuses) -> Refusal:
        return refuse_as_openai(refuses)


def _list_calls(says: Says) -> list[Body]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in says.calls
    ]


def _head(says: Says, request: Request, kind: str) -> Body:
    return {
        "id": f"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qM{request.number:04}",
        "object": kind,
        "created": 1_760_000_000,
        "model": says.model or request.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _usage(usage: Tokens | Body | None) -> Any:
    if not isinstance(usage, Tokens):
        return usage
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
