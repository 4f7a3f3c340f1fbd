"""OpenAI's Responses API; of its streams, those of text."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from .answers import Body, Refusal, Refuses, Request, Says, Stop, Tokens, as_json, event, in_parts
from .refusals import refuse_as_openai


class OpenAIResponses:
    stream_type = "text/event-stream; charset=utf-8"

    def takes(self, request: Request) -> bool:
        return request.path.endswith("/responses")

    def wants_stream(self, request: Request) -> bool:
        return bool(request.body.get("stream"))

    def whole(self, says: Says, request: Request) -> Body:
        reason = {Stop.LENGTH: "max_output_tokens", Stop.REFUSAL: "content_filter"}.get(says.stop)
        return {
            **_head(says, request),
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            "output": _items(says, request),
            "usage": _usage(says.usage),
        }

    def pieces(self, says: Says, request: Request) -> Iterator[bytes]:
        numbers = count()

        def told(kind: str, **fields: Any) -> bytes:
            return event({"type": kind, "sequence_number": next(numbers), **fields}, kind)

        begun = {**_head(says, request), "status": "in_progress", "output": [], "usage": None}
        yield told("response.created", response=begun)
        yield told("response.in_progress", response=begun)
        for item in _items(says, request):
            at = {"output_index": 0, "item_id": item["id"], "content_index": 0}
            (part,) = item["content"]
            added = {**item, "content": [], "status": "in_progress"}
            yield told("response.output_item.added", output_index=0, item=added)
            yield told("response.content_part.added", **at, part={**part, "text": ""})
            for delta in in_parts(part["text"]):
                yield told("response.output_text.delta", **at, delta=delta, logprobs=[])
            yield told("response.output_text.done", **at, text=part["text"], logprobs=[])
            yield told("response.content_part.done", **at, part=part)
            yield told("response.output_item.done", output_index=0, item=item)
        whole = self.whole(says, request)
        yield told(f"response.{whole['status']}", response=whole)

    def refusal(self, refuses: Refuses) -> Refusal:
        return refuse_as_openai(refuses)


def _head(says: Says, request: Request) -> Body:
    return {
        "id": f"resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3{request.number:04}",
        "object": "response",
        "created_at": 1_760_000_000,
        "error": None,
        "incomplete_details": None,
        "metadata": {},
        "model": says.model or request.model,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _items(says: Says, request: Request) -> list[Body]:
    if not says.text:
        return [
            {
                "id": f"fc_{request.number:04}_{call.id}",
                "type": "function_call",
                "status": "completed",
                "call_id": call.id,
                "name": call.name,
                "arguments": as_json(call.arguments).decode(),
            }
            for call in says.calls
        ]
    part = {"type": "output_text", "text": says.text, "annotations": [], "logprobs": []}
    return [
        {
            "id": f"msg_67ccd3acc8d48190a77525dc6de64b4104becb25c45c{request.number:04}",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }
    ]


def _usage(usage: Tokens | Body | None) -> Any:
    if not isinstance(usage, Tokens):
        return usage
    read = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": read + usage.output,
    }
