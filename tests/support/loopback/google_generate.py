"""Google's generateContent and streamGenerateContent, as the Gemini API has them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from .answers import Body, Refuses, Request, Says, Stop, Tokens, Why
from .wire import Refusal, as_json, in_parts

_STOPS = {
    Stop.END: "STOP",
    Stop.LENGTH: "MAX_TOKENS",
    Stop.TOOL: "STOP",
    Stop.REFUSAL: "PROHIBITED_CONTENT",
}
_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


class _Error(NamedTuple):
    status: int
    word: str
    message: str
    reason: str | None = None


_REFUSALS: dict[Why, _Error] = {
    Why.OVERFLOW: _Error(
        400,
        "INVALID_ARGUMENT",
        "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit}).",
    ),
    Why.RATE_LIMIT: _Error(
        429,
        "RESOURCE_EXHAUSTED",
        "You exceeded your current quota, please check your plan and billing details. For more "
        "information on this error, head over to: "
        "https://ai.google.dev/gemini-api/docs/rate-limits. * Quota exceeded for metric: "
        "generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10",
    ),
    Why.QUOTA: _Error(
        429,
        "RESOURCE_EXHAUSTED",
        "Your prepayment credits are depleted. Please go to AI Studio at "
        "https://ai.studio/projects to manage your project and billing.",
    ),
    Why.OVERLOADED: _Error(
        503,
        "UNAVAILABLE",
        "The model is overloaded. Please try again later.",
    ),
    Why.INTERNAL: _Error(
        500,
        "INTERNAL",
        "An internal error has occurred. Please retry or report in "
        "https://developers.generativeai.google/guide/troubleshooting",
    ),
    Why.WRONG_KEY: _Error(
        400,
        "INVALID_ARGUMENT",
        "API key not valid. Please pass a valid API key.",
        "API_KEY_INVALID",
    ),
    Why.EXPIRED_KEY: _Error(
        400,
        "INVALID_ARGUMENT",
        "API key expired. Please renew the API key.",
        "API_KEY_INVALID",
    ),
    Why.FORBIDDEN: _Error(
        403,
        "PERMISSION_DENIED",
        "Your project has been denied access. Please contact support.",
    ),
    Why.UNKNOWN_MODEL: _Error(
        404,
        "NOT_FOUND",
        "models/gemini-nothing is not found for API version v1beta, or is not supported for "
        "generateContent. Call ListModels to see the list of available models and their supported "
        "methods.",
    ),
    Why.OUTPUT_LIMIT: _Error(
        400,
        "INVALID_ARGUMENT",
        "Unable to submit request because it has a maxOutputTokens value of 100000 but the "
        "supported range is from 1 (inclusive) to 65537 (exclusive). Update the value and try "
        "again.",
    ),
}


class GoogleGenerate:
    """POST /v1beta/models/MODEL:generateContent."""

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
        status, word, message, reason = _REFUSALS[refuses.why]
        message = refuses.detail or message.format(tokens=refuses.tokens, limit=refuses.limit)
        error: Body = {"code": status, "message": message, "status": word}
        if reason:
            error["details"] = [
                {"@type": _INFO, "reason": reason, "domain": "googleapis.com", "metadata": {}}
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
