"""Amazon Bedrock's Converse and ConverseStream, the latter in binary frames."""

from collections.abc import Iterator
from struct import pack
from typing import Any, NamedTuple
from zlib import crc32

from .answers import Body, Refuses, Request, Says, Stop, Tokens, Why
from .wire import Refusal, as_json, in_parts

_STOPS = {
    Stop.END: "end_turn",
    Stop.LENGTH: "max_tokens",
    Stop.TOOL: "tool_use",
    Stop.REFUSAL: "guardrail_intervened",
}


class _Error(NamedTuple):
    status: int
    kind: str
    message: str


_REFUSALS: dict[Why, _Error] = {
    Why.OVERFLOW: _Error(
        400,
        "ValidationException",
        "The model returned the following errors: prompt is too long: {tokens} tokens > {limit} "
        "maximum",
    ),
    Why.RATE_LIMIT: _Error(
        429,
        "ThrottlingException",
        "Too many tokens, please wait before trying again.",
    ),
    Why.QUOTA: _Error(
        400,
        "ServiceQuotaExceededException",
        "Your request exceeds the service quota for your account.",
    ),
    Why.OVERLOADED: _Error(
        503,
        "ServiceUnavailableException",
        "Bedrock is unable to process your request.",
    ),
    Why.INTERNAL: _Error(
        500,
        "InternalServerException",
        "The system encountered an unexpected error during processing. Try your request again.",
    ),
    Why.WRONG_KEY: _Error(
        403,
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
    ),
    Why.EXPIRED_KEY: _Error(
        403,
        "ExpiredTokenException",
        "The security token included in the request is expired",
    ),
    Why.FORBIDDEN: _Error(
        403,
        "AccessDeniedException",
        "You don't have access to the model with the specified model ID.",
    ),
    Why.UNKNOWN_MODEL: _Error(
        400,
        "ValidationException",
        "The provided model identifier is invalid.",
    ),
    Why.OUTPUT_LIMIT: _Error(
        400,
        "ValidationException",
        "The maximum tokens you requested exceeds the model limit of 8192. Try again with a "
        "maximum tokens value that is lower than 8192.",
    ),
}


class BedrockConverse:
    """POST /model/MODEL/converse."""

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
            if "toolUse" in block:
                call = block["toolUse"]
                start = {"toolUse": {"toolUseId": call["toolUseId"], "name": call["name"]}}
                yield frame("contentBlockStart", {**at, "start": start})
                for part in in_parts(as_json(call["input"]).decode()):
                    delta: Body = {"toolUse": {"input": part}}
                    yield frame("contentBlockDelta", {**at, "delta": delta})
            else:
                for part in in_parts(block["text"]):
                    yield frame("contentBlockDelta", {**at, "delta": {"text": part}})
            yield frame("contentBlockStop", at)
        yield frame("messageStop", {"stopReason": _STOPS[says.stop]})
        usage = _usage(says.usage)
        end: Body = {"metrics": {"latencyMs": 1_234}}
        yield frame("metadata", end if usage is None else {**end, "usage": usage})

    def refusal(self, refuses: Refuses) -> Refusal:
        status, kind, message = _REFUSALS[refuses.why]
        message = refuses.detail or message.format(tokens=refuses.tokens, limit=refuses.limit)
        headers = {
            "x-amzn-errortype": f"{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/",
            "x-amzn-requestid": "b0f0ea5d-8a5c-4d0a-bd1a-1a4f7f9a5ef5",
        }
        if refuses.retry_after_s is not None:
            headers["retry-after"] = f"{refuses.retry_after_s:g}"
        return Refusal(status, {"message": message}, headers)


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
    said: list[Body] = [{"text": says.text}] if says.text else []
    return said + [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}}
        for call in says.calls
    ]


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
