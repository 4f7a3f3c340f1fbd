"""Anthropic's Messages API."""

from collections.abc import Iterator
from typing import Any

from .answers import (
    Body,
    Refusal,
    Refuses,
    Request,
    Says,
    Stop,
    Tokens,
    Why,
    as_json,
    event,
    in_parts,
)
from .refusals import retry_headers, word

_STOPS = {
    Stop.END: "end_turn",
    Stop.LENGTH: "max_tokens",
    Stop.TOOL: "tool_use",
    Stop.REFUSAL: "refusal",
}


_ERRORS: dict[Why, tuple[int, str]] = {
    Why.OVERFLOW: (400, "invalid_request_error"),
    Why.RATE_LIMIT: (429, "rate_limit_error"),
    Why.INTERNAL: (500, "api_error"),
    Why.WRONG_KEY: (401, "authentication_error"),
}


class AnthropicMessages:
    stream_type = "text/event-stream; charset=utf-8"

    def takes(self, request: Request) -> bool:
        return request.path.endswith("/v1/messages")

    def wants_stream(self, request: Request) -> bool:
        return bool(request.body.get("stream"))

    def whole(self, says: Says, request: Request) -> Body:
        return {**_message(says, request), "content": _content(says), **_ending(says)}

    def pieces(self, says: Says, request: Request) -> Iterator[bytes]:
        usage = _usage(says.usage)
        begun: Body = {**_message(says, request), "content": [], "stop_reason": None}
        if usage is not None:
            begun["usage"] = {**usage, "output_tokens": 1}
        yield _event({"type": "message_start", "message": begun})
        for index, block in enumerate(_content(says)):
            at = {"index": index}
            empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
            yield _event({"type": "content_block_start", **at, "content_block": empty})
            yield _event({"type": "ping"})
            for delta in _deltas(block):
                yield _event({"type": "content_block_delta", **at, "delta": delta})
            yield _event({"type": "content_block_stop", **at})
        ending = _ending(says)
        told = {"usage": ending.pop("usage")} if usage is not None else {}
        yield _event({"type": "message_delta", "delta": ending, **told})
        yield _event({"type": "message_stop"})

    def refusal(self, refuses: Refuses) -> Refusal:
        status, kind = _ERRORS[refuses.why]
        error = {"type": kind, "message": word(refuses)}
        return Refusal(status, {"type": "error", "error": error}, retry_headers(refuses))


def _message(says: Says, request: Request) -> Body:
    return {
        "id": f"msg_01XFDUDYJgAACzvnptvV{request.number:04}",
        "type": "message",
        "role": "assistant",
        "model": says.model or request.model,
        "stop_sequence": None,
    }


def _content(says: Says) -> list[Body]:
    said: list[Body] = [{"type": "text", "text": says.text}] if says.text else []
    return said + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
        for call in says.calls
    ]


def _ending(says: Says) -> Body:
    ending: Body = {"stop_reason": _STOPS[says.stop], "stop_sequence": None}
    usage = _usage(says.usage)
    return ending if usage is None else {**ending, "usage": usage}


def _deltas(block: Body) -> Iterator[Body]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": part} for part in in_parts(block["text"]))
    else:
        for part in in_parts(as_json(block["input"]).decode()):
            yield {"type": "input_json_delta", "partial_json": part}


def _usage(usage: Tokens | Body | None) -> Any:
    if not isinstance(usage, Tokens):
        return usage
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        "service_tier": "standard",
    }


def _event(body: Body) -> bytes:
    return event(body, body["type"])
