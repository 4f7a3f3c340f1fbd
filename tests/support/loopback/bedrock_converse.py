"""Amazon Bedrock's Converse and ConverseStream, the latter in binary frames; answers are text."""

from collections.abc import Iterator
from struct import pack
from typing import Any
from zlib import crc32

from .answers import Body, Refusal, Refuses, Request, Says, Stop, Tokens, Why, as_json, in_parts
from .refusals import retry_headers, word

_STOPS = {
    Stop.END: "end_turn",
    Stop.LENGTH: "max_tokens",
    Stop.TOOL: "tool_use",
    Stop.REFUSAL: "guardrail_intervened",
}


_ERRORS: dict[Why, tuple[int, str]] = {
    Why.OVERFLOW: (400, "ValidationException"),
    Why.RATE_LIMIT: (429, "ThrottlingException"),
    Why.INTERNAL: (500, "InternalServerException"),
    Why.WRONG_KEY: (403, "UnrecognizedClientException"),
}


class BedrockConverse:
    stream_type = "application/vnd.amazon.eventstream"

    def takes(self, request: Request) -> bool:
        return request.path.startswith("/model/") and request.path.endswith(
            ("/converse", "/converse-stream")
        )

    def wants_stream(self, request: Request) -> bool:
        return request.path.endswith("/converse-stream")

    def whole(self, says: Says, request: Request) -> Body:
        body: Body = {
            "metrics": {"latencyMs": 1_234},
            "output": {"message": {"role": "assistant", "content": _content(says)}},
            "stopReason": _STOPS[says.stop],
        }
        usage = _usage(says.usage)
        return body if usage is None else {**body, "usage": usage}

    def pieces(self, says: Says, request: Request) -> Iterator[bytes]:
        yield frame("messageStart", {"role": "assistant"})
        for index, block in enumerate(_content(says)):
            at = {"contentBlockIndex": index}
            for part in in_parts(block["text"]):
                yield frame("contentBlockDelta", {**at, "delta": {"text": part}})
            yield frame("contentBlockStop", at)
        yield frame("messageStop", {"stopReason": _STOPS[says.stop]})
        usage = _usage(says.usage)
        end: Body = {"metrics": {"latencyMs": 1_234}}
        yield frame("metadata", end if usage is None else {**end, "usage": usage})

    def refusal(self, refuses: Refuses) -> Refusal:
        status, kind = _ERRORS[refuses.why]
        headers = {
            "x-amzn-errortype": f"{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/",
            "x-amzn-requestid": "b0f0ea5d-8a5c-4d0a-bd1a-1a4f7f9a5ef5",
        }
        return Refusal(status, {"message": word(refuses)}, headers | retry_headers(refuses))


def frame(event_type: str, body: Body) -> bytes:
    """One message of an event stream: lengths, headers, payload, and checksums over both."""
    headers = b"".join(
        _header(name, value)
        for name, value in (
            (":event-type", event_type),
            (":content-type", "application/json"),
            (":message-type", "event"),
        )
    )
    payload = as_json(body)
    prelude = pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + pack("!I", crc32(prelude)) + headers + payload
    return message + pack("!I", crc32(message))


def _header(name: str, value: str) -> bytes:
    is_text = 7
    return pack("!B", len(name)) + name.encode() + pack("!BH", is_text, len(value)) + value.encode()


def _content(says: Says) -> list[Body]:
    return [{"text": says.text}] if says.text else []


def _usage(usage: Tokens | Body | None) -> Any:
    if not isinstance(usage, Tokens):
        return usage
    return {
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "totalTokens": usage.input + usage.cache_read + usage.cache_write + usage.output,
        "cacheReadInputTokens": usage.cache_read,
        "cacheWriteInputTokens": usage.cache_write,
    }
