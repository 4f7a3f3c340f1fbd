"""Google's generateContent and streamGenerateContent: answers of text and calls."""

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
_ERRORS: dict[Why, tuple[int, str]] = {
    Why.OVERFLOW: (400, "INVALID_ARGUMENT"),
    Why.RATE_LIMIT: (429, "RESOURCE_EXHAUSTED"),
    Why.INTERNAL: (500, "INTERNAL"),
    Why.WRONG_KEY: (400, "INVALID_ARGUMENT"),
}
_TYPE = "type.googleapis.com/google.rpc."
_BAD_KEY = {"@type": f"{_TYPE}ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
_OVERFLOW = "The input token count ({0}) exceeds the maximum number of tokens allowed ({1})."


class GoogleGenerate:
    stream_type = "text/event-stream"

    def takes(self, request: Request) -> bool:
        return request.path.endswith((":generateContent", ":streamGenerateContent"))

    def wants_stream(self, request: Request) -> bool:
        return request.path.endswith(":streamGenerateContent")

    def whole(self, says: Says, request: Request) -> Body:
        return _chunk(says, request, says.text, _STOPS[says.stop])

    def pieces(self, says: Says, request: Request) -> Iterator[bytes]:
        for part in in_parts(says.text):
            yield _event(_chunk(says, request, part, None))
        yield _event(_chunk(says, request, "", _STOPS[says.stop]))

    def refusal(self, refuses: Refuses) -> Refusal:
        status, kind = _ERRORS[refuses.why]
        error: Body = {"code": status, "message": word(refuses), "status": kind}
        if refuses.why is Why.OVERFLOW and not refuses.detail:
            error["message"] = _OVERFLOW.format(refuses.tokens, refuses.limit)
        if refuses.why is Why.WRONG_KEY:
            error["details"] = [_BAD_KEY]
        if refuses.retry_after_s is not None:
            delay = f"{refuses.retry_after_s:g}s"
            error["details"] = [{"@type": f"{_TYPE}RetryInfo", "retryDelay": delay}]
        return Refusal(status, {"error": error})


def _chunk(says: Says, request: Request, text: str, finish: str | None) -> Body:
    parts: list[Body] = [{"text": text}] if text or not says.calls else []
    if finish:
        parts += [{"functionCall": {"name": one.name, "args": one.arguments}} for one in says.calls]
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


def _usage(usage: Tokens | Body | None) -> Any:
    if not isinstance(usage, Tokens):
        return usage
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "promptTokenCount": prompt,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "thoughtsTokenCount": usage.reasoning,
        "cachedContentTokenCount": usage.cache_read,
        "totalTokenCount": prompt + usage.output,
    }


def _event(body: Body) -> bytes:
    return b"data: " + as_json(body) + b"\r\n\r\n"
