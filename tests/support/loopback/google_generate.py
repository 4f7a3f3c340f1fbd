"""Google's generateContent and streamGenerateContent, as the Gemini API has them."""

from collections.abc import Iterator
from typing import Any

from .answers import Body, Refusal, Refuses, Request, Says, Stop, Tokens, Why, as_json, in_parts
from .refusals import word

_STOPS = {
    Stop.END: "STOP",
    Stop.LENGTH: "MAX_TOKENS",
    Stop.TOOL: "STOP",
    Stop.REFUSAL: "PROHIBITED_CONTENT",
}
_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


_ERRORS: dict[Why, tuple[int, str]] = {
    Why.OVERFLOW: (400, "INVALID_ARGUMENT"),
    Why.RATE_LIMIT: (429, "RESOURCE_EXHAUSTED"),
    Why.QUOTA: (429, "RESOURCE_EXHAUSTED"),
    Why.OVERLOADED: (503, "UNAVAILABLE"),
    Why.INTERNAL: (500, "INTERNAL"),
    Why.WRONG_KEY: (400, "INVALID_ARGUMENT"),
    Why.EXPIRED_KEY: (400, "INVALID_ARGUMENT"),
    Why.FORBIDDEN: (403, "PERMISSION_DENIED"),
    Why.UNKNOWN_MODEL: (404, "NOT_FOUND"),
    Why.OUTPUT_LIMIT: (400, "INVALID_ARGUMENT"),
}
_WORDS = {
    Why.OVERFLOW: "The input token count ({tokens}) exceeds the maximum number of tokens allowed "
    "({limit}).",
    Why.RATE_LIMIT: "You exceeded your current quota. * Quota exceeded for metric: "
    "generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10",
    Why.OUTPUT_LIMIT: "Unable to submit request because it has a maxOutputTokens value of 100000 "
    "but the supported range is from 1 (inclusive) to 65537 (exclusive).",
}
_BAD_KEYS = (Why.WRONG_KEY, Why.EXPIRED_KEY)


class GoogleGenerate:
    stream_type = "text/event-stream"

    def takes(self, request: Request) -> bool:
        return request.path.endswith((":generateContent", ":streamGenerateContent"))

    def wants_stream(self, request: Request) -> bool:
        return request.path.endswith(":streamGenerateContent")

    def whole(self, says: Says, request: Request) -> Body:
        return _chunk(says, request, _parts(says), _STOPS[says.stop])

    def pieces(self, says: Says, request: Request) -> Iterator[bytes]:
        for part in in_parts(says.text):
            yield _event(_chunk(says, request, [{"text": part}], None))
        calls = _parts(says)[bool(says.text) :]
        last = _chunk(says, request, calls or [{"text": ""}], _STOPS[says.stop])
        yield _event(last)

    def refusal(self, refuses: Refuses) -> Refusal:
        status, kind = _ERRORS[refuses.why]
        error: Body = {"code": status, "message": word(refuses, _WORDS), "status": kind}
        if refuses.why in _BAD_KEYS:
            error["details"] = [
                {
                    "@type": _INFO,
                    "reason": "API_KEY_INVALID",
                    "domain": "googleapis.com",
                    "metadata": {},
                }
            ]
        if refuses.retry_after_s is not None:
            delay = f"{refuses.retry_after_s:g}s"
            error["details"] = [
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
            ]
        return Refusal(status, {"error": error})


def _chunk(says: Says, request: Request, parts: list[Body], finish: str | None) -> Body:
    candidate: Body = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    body: Body = {
        "candidates": [candidate],
        "modelVersion": says.model or request.model,
        "responseId": f"5NPCaOb8KsmF1dkPtdS{request.number:04}",
    }
    usage = _usage(says.usage)
    return body if usage is None else {**body, "usageMetadata": usage}


def _parts(says: Says) -> list[Body]:
    said: list[Body] = [{"text": says.text}] if says.text else []
    return said + [
        {"functionCall": {"name": call.name, "args": call.arguments}} for call in says.calls
    ]


def _usage(usage: Tokens | Body | None) -> Any:
    if not isinstance(usage, Tokens):
        return usage
    prompt = usage.input + usage.cache_read + usage.cache_write
    counts: Body = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": prompt + usage.output,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
    }
    if usage.cache_read:
        counts["cachedContentTokenCount"] = usage.cache_read
    if usage.reasoning:
        counts["thoughtsTokenCount"] = usage.reasoning
    return counts


def _event(body: Body) -> bytes:
    return b"data: " + as_json(body) + b"\r\n\r\n"
