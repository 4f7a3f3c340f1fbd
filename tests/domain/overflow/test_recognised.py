"""What providers really say, from where it was reported, and whether it is an overflow."""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from botocore.exceptions import ClientError
from google.genai.errors import ClientError as GoogleClientError
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.exceptions import FallbackExceptionGroup, ModelHTTPError

from cutbank.domain.overflow import Overflow, recognize_overflow
from cutbank.domain.overflow_wordings import OVERFLOW_CODES

Row = dict[str, Any]

TABLE: dict[str, list[Row]] = json.loads(
    Path(__file__).with_name("messages.json").read_text(encoding="utf-8")
)
SYSTEMS: dict[str, list[tuple[str | None, bool]]] = json.loads(
    Path(__file__).with_name("systems.json").read_text(encoding="utf-8")
)
"""By reference system: messages, and whether it takes them for overflows."""
TOO_LONG = "prompt is too long: 208656 tokens > 200000 maximum"
RATE = "This request would exceed your organization's rate limit of 30,000 input tokens per minute"
REQUEST = httpx.Request("POST", "https://localhost/v1", content=TOO_LONG)


def said(row: Row) -> Any:
    return row["body"] if "body" in row else row["text"]


def words_of(row: Row) -> str:
    return said(row) if isinstance(said(row), str) else json.dumps(said(row))


def named(row: Row) -> str:
    return f"{row['provider']}: {row['source']}"


class RefusedError(Exception):
    """As the clients' own errors are: a status, a body and words."""

    def __init__(self, status: int | None, body: object) -> None:
        super().__init__(f"Error code: {status} - {body}" if status else "the request failed")
        self.status_code = status
        self.body = body


def test_an_overflow_is_recognised_with_its_numbers() -> None:
    def wrong(row: Row) -> bool:
        found = recognize_overflow(said(row))
        return found is None or (found.tokens, found.limit) != (row.get("tokens"), row.get("limit"))

    assert not [named(row) for row in TABLE["overflows"] if wrong(row)]
    assert recognize_overflow(TOO_LONG) == Overflow(TOO_LONG, 208656, 200000)


@pytest.mark.claim("S2.34")
def test_what_any_system_takes_is_recognised_and_little_else() -> None:
    texts = {text for rows in SYSTEMS.values() for text, _ in rows if text}
    taken = {text for rows in SYSTEMS.values() for text, takes in rows if takes and text}
    found = {text for text in texts if recognize_overflow(text)}

    assert taken - found == {text for text in taken if "(no body)" in text.lower()}
    assert found - taken == {
        "input token count 5\nexceeds the maximum",  # a terminal breaks lines anywhere
        "maximum context length",
        "maximum context length is many tokens",
    }


FORMS: dict[str, Callable[[Row], object]] = {
    "json": words_of,
    "bytes": lambda row: words_of(row).encode(),
    "exception": lambda row: RefusedError(row["status"], said(row)),
    "repr": lambda row: RuntimeError(f"the model failed: {said(row)!r}"),
    "list": lambda row: [said(row)],
}


@pytest.mark.parametrize("form", FORMS)
def test_overflows_alone_are_recognised_in_any_form(form: str) -> None:
    def taken(rows: list[Row]) -> list[str]:
        return [named(row) for row in rows if recognize_overflow(FORMS[form](row))]

    assert min(map(len, TABLE.values())) >= 60
    assert taken(TABLE["overflows"]) == list(map(named, TABLE["overflows"]))
    assert taken(TABLE["others"]) == []


ANTHROPIC_BODY = {"type": "error", "error": {"type": "invalid_request_error", "message": TOO_LONG}}
OPENAI_BODY = {
    "error": {
        "message": "Your input exceeds the context window of this model.",
        "type": "invalid_request_error",
        "param": "input",
        "code": "context_length_exceeded",
    }
}
COUNTED = "The input token count (81881) exceeds the maximum number of tokens allowed (65536)."
GOOGLE_BODY = {"error": {"code": 400, "message": COUNTED, "status": "INVALID_ARGUMENT"}}


def response(status: int, body: object) -> httpx.Response:
    return httpx.Response(status, json=body, request=REQUEST)


def new_response(status: int, body: object) -> httpx2.Response:
    request = httpx2.Request("POST", "https://localhost/v1", content=TOO_LONG)
    return httpx2.Response(status, json=body, request=request)


def aws_error(status: int, code: str, message: str) -> ClientError:
    metadata = {"HTTPStatusCode": status}
    error = {"Code": code, "Message": message}
    return ClientError({"Error": error, "ResponseMetadata": metadata}, "Converse")


REAL_ERRORS = {
    "anthropic": anthropic.BadRequestError(
        "Error code: 400", response=new_response(400, ANTHROPIC_BODY), body=ANTHROPIC_BODY
    ),
    "openai": openai.BadRequestError(
        "Error code: 400", response=new_response(400, OPENAI_BODY), body=OPENAI_BODY["error"]
    ),
    "google": GoogleClientError(400, GOOGLE_BODY),
    "botocore": aws_error(400, "ValidationException", "Input is too long for requested model."),
    "httpx": httpx.HTTPStatusError(
        "Client error '400 Bad Request'", request=REQUEST, response=response(400, OPENAI_BODY)
    ),
    "pydantic-ai": ModelHTTPError(400, "claude", ANTHROPIC_BODY),
    "one of many models": FallbackExceptionGroup(
        "all models failed",
        [ModelHTTPError(429, "a", {}), ModelHTTPError(400, "b", ANTHROPIC_BODY)],
    ),
}
RATE_BODY = {"type": "error", "error": {"type": "rate_limit_error", "message": RATE}}
REAL_OTHERS = {
    "anthropic": anthropic.RateLimitError(
        "Error code: 429", response=new_response(429, RATE_BODY), body=RATE_BODY
    ),
    "openai": openai.RateLimitError("429", response=new_response(429, {}), body=None),
    "google": GoogleClientError(429, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}),
    "botocore": aws_error(429, "ThrottlingException", "Too many tokens, please wait."),
    "httpx": httpx.HTTPStatusError("429", request=REQUEST, response=response(429, RATE_BODY)),
    "pydantic-ai": ModelHTTPError(429, "claude", RATE_BODY),
    "a request that quotes one": httpx.ConnectError("connection refused", request=REQUEST),
}


def test_the_errors_of_real_libraries_are_understood_and_their_rate_limits_are_none() -> None:
    assert not [library for library, error in REAL_ERRORS.items() if not recognize_overflow(error)]
    assert not [library for library, error in REAL_OTHERS.items() if recognize_overflow(error)]


def failed(*errors: BaseException) -> BaseException:
    """The first error, raised while the next was handled, and so on."""
    for outer, inner in pairwise(errors):
        outer.__context__ = inner
    return errors[0]


def test_the_outermost_error_that_says_what_it_is_about_decides() -> None:
    hidden = failed(RuntimeError("no"), RefusedError(400, TOO_LONG))
    hidden.__suppress_context__ = True
    caused, one, other = RuntimeError("no"), RuntimeError("a"), RuntimeError("b")
    caused.__cause__ = RefusedError(400, TOO_LONG)
    one.__cause__, other.__cause__ = other, one

    overflows = [
        caused,
        failed(RuntimeError("no"), RefusedError(400, TOO_LONG)),
        failed(RefusedError(400, TOO_LONG), RefusedError(429, RATE)),
    ]
    others = [hidden, one, failed(RefusedError(429, RATE), RefusedError(400, TOO_LONG))]
    assert [error for error in (*overflows, *others) if recognize_overflow(error)] == overflows


def test_a_code_needs_no_words_and_counts_in_fields_of_their_own_come_first() -> None:
    for code in OVERFLOW_CODES:
        assert recognize_overflow({"error": {"code": code}}) == Overflow(code), code
    counted = recognize_overflow(
        {
            "type": "exceed_context_size_error",
            "message": "request (1 tokens) exceeds the available context size (2 tokens)",
            "n_prompt_tokens": 300,
            "n_ctx": 200,
        }
    )
    assert counted is not None
    assert (counted.tokens, counted.limit) == (300, 200)


def test_a_user_who_talks_of_overflows_is_not_heard() -> None:
    error = {
        "error": {"type": "invalid_request_error", "message": "messages.0: bad role"},
        "input": {"messages": [{"role": "usr", "content": TOO_LONG}]},
        "request": {"body": TOO_LONG},
    }

    assert recognize_overflow(error) is None


def test_what_other_systems_go_by_gives_way_to_words_about_other_sizes() -> None:
    others = [
        "max tokens must be below 4096",
        "maximum tokens to generate is over the token limit of the plan",
        "the number of images exceeds the limit of 100",
        "the file exceeds the limit of 20 MB",
        "context_length must be at least 2048",
    ]
    overflows = ["token limit reached", "max context reached", "Input too long"]

    assert [text for text in (*others, *overflows) if recognize_overflow(text)] == overflows


SECRETS = [
    *("sk-ant-api03-AbCdEf0123456789AbCdEf", "AIzaSyA0123456789abcdefghijklmnopqrstu"),
    *("AKIAIOSFODNN7EXAMPLE", "gsk_0123456789abcdefghijABCDEFGHIJ"),
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.abc",
]


def test_the_message_is_one_short_line_around_what_was_said_without_any_key() -> None:
    for secret in SECRETS:
        keys = f"key={secret} Authorization: Bearer {secret} "
        for around in (keys, keys + "word\n" * 5_000):
            found = recognize_overflow(f"{around}{TOO_LONG}\nkey={secret}{' x' * 5_000}")

            assert found is not None
            assert TOO_LONG in found.message
            assert secret[:12] not in found.message
            assert "\n" not in found.message
            assert len(found.message) <= 302


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
KEYS = st.sampled_from(
    ["error", "code", "message", "type", "body", "status_code", "details", "raw", "n_ctx", "status"]
)
BODIES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text() | st.integers(), inner)
    ),
    max_leaves=20,
)


class HostileError(Exception):
    """An error whose every part fails when it is looked at."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattribute__(name)
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("str")


class Slippery(dict[str, object]):
    """A mapping that breaks while it is read."""

    def __getitem__(self, key: str) -> object:
        raise RuntimeError(key)


@given(BODIES, BODIES, BODIES)
def test_nothing_raises_whatever_an_error_holds(code: object, body: object, words: object) -> None:
    error = RefusedError(400, body)
    error.code = code  # type: ignore[attr-defined]
    error.message = words  # type: ignore[attr-defined]
    error.args = (words, body)
    error.__cause__ = HostileError()

    assert isinstance(recognize_overflow(body), Overflow | None)
    assert isinstance(recognize_overflow(error), Overflow | None)


def test_what_cannot_be_read_is_no_overflow() -> None:
    things: list[object] = [HostileError(), Slippery(error=TOO_LONG), object(), HostileError]
    unread = httpx.Response(400, stream=httpx.ByteStream(b"{}"), request=REQUEST)
    things += [httpx.HTTPStatusError("", request=REQUEST, response=unread)]
    things += [lambda: TOO_LONG, float("nan"), b"\xff"]

    assert not [thing for thing in things if recognize_overflow(thing) is not None]


def test_what_goes_on_for_ever_is_read_so_far_and_no_further() -> None:
    around: dict[str, object] = {}
    around["error"] = around
    deep: object = TOO_LONG
    for _ in range(5_000):
        deep = [deep]

    assert recognize_overflow(around) is None
    assert recognize_overflow(deep) is None
    assert recognize_overflow("[" * 40_000) is None
    assert recognize_overflow({"message": "9" * 40_000 + TOO_LONG.replace("208656", "9" * 5_000)})


@given(st.sampled_from(TABLE["overflows"]), st.sampled_from(["429", "Rate limit exceeded", "TPM"]))
def test_a_rate_limit_is_never_an_overflow_whatever_else_it_says(row: Row, rate: str) -> None:
    words = re.sub(r"[{}\[\]\"]", " ", said(row) if "text" in row else json.dumps(said(row)))

    assert recognize_overflow({"status_code": 429, "message": words}) is None
    if rate != "429":
        assert recognize_overflow(f"{rate}: {words}") is None
