"""What providers really say, from where it was reported, and whether it is an overflow."""

import json
import re
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from google.genai.errors import ClientError as GoogleClientError
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.exceptions import FallbackExceptionGroup, ModelHTTPError

from cutbank.domain.overflow import Overflow, recognised
from cutbank.domain.overflow.codes import CODES
from cutbank.domain.overflow.specific_wordings import SPECIFIC
from cutbank.domain.overflow.weak_wordings import MARKS

Row = dict[str, Any]

TABLE: dict[str, list[Row]] = json.loads(
    Path(__file__).with_name("messages.json").read_text(encoding="utf-8")
)
TOO_LONG = "prompt is too long: 208656 tokens > 200000 maximum"
RATE = "This request would exceed your organization's rate limit of 30,000 input tokens per minute"
REQUEST = httpx.Request("POST", "https://localhost/v1", content=TOO_LONG)


def said(row: Row) -> Any:
    return row["body"] if "body" in row else row["text"]


def named(row: Row) -> str:
    return f"{row['provider']}: {row['source']}"


class RefusedError(Exception):
    """As the clients' own errors are: a status, a body and words."""

    def __init__(self, status: int | None, body: object) -> None:
        super().__init__(f"Error code: {status} - {body}" if status else "the request failed")
        self.status_code = status
        self.body = body


@pytest.mark.parametrize("row", TABLE["overflows"], ids=named)
def test_an_overflow_is_recognised_with_its_numbers(row: Row) -> None:
    overflow = recognised(said(row))

    assert overflow is not None
    assert overflow.provider == row.get("rule_provider", row["provider"])
    assert (overflow.tokens, overflow.limit) == (row.get("tokens"), row.get("limit"))


@pytest.mark.parametrize("row", TABLE["overflows"], ids=named)
@pytest.mark.parametrize("form", ["json", "bytes", "exception", "repr", "list"])
def test_an_overflow_is_recognised_in_any_form(row: Row, form: str) -> None:
    text = said(row) if isinstance(said(row), str) else json.dumps(said(row))
    forms = {
        "json": text,
        "bytes": text.encode(),
        "exception": RefusedError(row["status"], said(row)),
        "repr": RuntimeError(f"the model failed: {said(row)!r}"),
        "list": [said(row)],
    }

    assert recognised(forms[form]) is not None


@pytest.mark.parametrize("row", TABLE["others"], ids=named)
def test_what_only_sounds_like_an_overflow_is_none(row: Row) -> None:
    text = said(row) if isinstance(said(row), str) else json.dumps(said(row))

    assert recognised(said(row)) is None
    assert recognised(text) is None
    assert recognised(RefusedError(row["status"], said(row))) is None
    assert recognised(RuntimeError(f"the model failed: {said(row)!r}")) is None


def test_the_table_is_large_and_names_its_sources() -> None:
    rows = TABLE["overflows"] + TABLE["others"]

    assert len(TABLE["overflows"]) >= 60
    assert len(TABLE["others"]) >= 60
    assert all(row["source"] for row in rows)
    assert len({json.dumps(said(row)) for row in rows}) == len(rows)


ANTHROPIC_BODY = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": TOO_LONG},
}
OPENAI_BODY = {
    "error": {
        "message": "Your input exceeds the context window of this model.",
        "type": "invalid_request_error",
        "param": "input",
        "code": "context_length_exceeded",
    }
}
GOOGLE_BODY = {
    "error": {
        "code": 400,
        "message": "The input token count (81881) exceeds the maximum number of tokens allowed"
        " (65536).",
        "status": "INVALID_ARGUMENT",
    }
}


def response(status: int, body: object) -> httpx.Response:
    return httpx.Response(status, json=body, request=REQUEST)


def new_response(status: int, body: object) -> httpx2.Response:
    request = httpx2.Request("POST", "https://localhost/v1", content=TOO_LONG)
    return httpx2.Response(status, json=body, request=request)


REAL_ERRORS = {
    "anthropic": anthropic.BadRequestError(
        "Error code: 400", response=new_response(400, ANTHROPIC_BODY), body=ANTHROPIC_BODY
    ),
    "openai": openai.BadRequestError(
        "Error code: 400", response=new_response(400, OPENAI_BODY), body=OPENAI_BODY["error"]
    ),
    "google": GoogleClientError(400, GOOGLE_BODY),
    "botocore": ClientError(
        {
            "Error": {
                "Code": "ValidationException",
                "Message": "Input is too long for requested model.",
            },
            "ResponseMetadata": {"HTTPStatusCode": 400},
        },
        "Converse",
    ),
    "httpx": httpx.HTTPStatusError(
        "Client error '400 Bad Request'", request=REQUEST, response=response(400, OPENAI_BODY)
    ),
    "pydantic-ai": ModelHTTPError(400, "claude", ANTHROPIC_BODY),
}


@pytest.mark.parametrize("library", REAL_ERRORS)
def test_the_errors_of_real_libraries_are_understood(library: str) -> None:
    assert recognised(REAL_ERRORS[library]) is not None


RATE_BODY = {"type": "error", "error": {"type": "rate_limit_error", "message": RATE}}
REAL_OTHERS = {
    "anthropic": anthropic.RateLimitError(
        "Error code: 429", response=new_response(429, RATE_BODY), body=RATE_BODY
    ),
    "openai": openai.RateLimitError("429", response=new_response(429, {}), body=None),
    "google": GoogleClientError(429, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}),
    "botocore": ClientError(
        {
            "Error": {
                "Code": "ThrottlingException",
                "Message": "Too many tokens, please wait before trying again.",
            },
            "ResponseMetadata": {"HTTPStatusCode": 429},
        },
        "Converse",
    ),
    "httpx": httpx.HTTPStatusError("429", request=REQUEST, response=response(429, RATE_BODY)),
    "pydantic-ai": ModelHTTPError(429, "claude", RATE_BODY),
    "a request that quotes one": httpx.ConnectError("connection refused", request=REQUEST),
}


@pytest.mark.parametrize("library", REAL_OTHERS)
def test_the_rate_limits_of_real_libraries_are_none(library: str) -> None:
    assert recognised(REAL_OTHERS[library]) is None


def test_a_response_that_was_not_read_yet_is_no_trouble() -> None:
    unread = httpx.Response(400, stream=httpx.ByteStream(b"{}"), request=REQUEST)

    assert recognised(httpx.HTTPStatusError("", request=REQUEST, response=unread)) is None


def chained(outer: BaseException, inner: BaseException, *, explicitly: bool) -> BaseException:
    if explicitly:
        outer.__cause__ = inner
    else:
        outer.__context__ = inner
    return outer


@pytest.mark.parametrize("explicitly", [True, False])
def test_an_error_that_says_nothing_is_about_what_caused_it(explicitly: bool) -> None:
    error = chained(
        RuntimeError("the agent failed"), RefusedError(400, TOO_LONG), explicitly=explicitly
    )

    assert recognised(error) is not None


def test_a_cause_that_was_hidden_is_not_asked() -> None:
    error = chained(RuntimeError("the agent failed"), RefusedError(400, TOO_LONG), explicitly=False)
    error.__suppress_context__ = True

    assert recognised(error) is None


def test_the_outermost_error_that_says_what_it_is_about_decides() -> None:
    overflow, rate = RefusedError(400, TOO_LONG), RefusedError(429, RATE)

    met_later = chained(RefusedError(429, RATE), overflow, explicitly=False)
    retried = chained(RefusedError(400, TOO_LONG), rate, explicitly=False)

    assert recognised(met_later) is None
    assert recognised(retried) is not None


def test_of_many_models_that_were_tried_one_that_overflowed_is_enough() -> None:
    group = FallbackExceptionGroup(
        "all models failed",
        [ModelHTTPError(429, "a", RATE_BODY), ModelHTTPError(400, "b", ANTHROPIC_BODY)],
    )

    overflow = recognised(group)

    assert overflow is not None
    assert overflow.tokens == 208656


def test_a_chain_that_bites_its_tail_ends() -> None:
    one, other = RuntimeError("a"), RuntimeError("b")
    one.__cause__, other.__cause__ = other, one

    assert recognised(one) is None


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_code_needs_no_words(code: str) -> None:
    overflow = recognised({"error": {"code": code}})

    assert overflow is not None
    assert overflow.rule == f"code:{code}"
    assert overflow.provider == CODES[code]


def test_counts_in_fields_of_their_own_are_taken_before_those_in_words() -> None:
    overflow = recognised(
        {
            "type": "exceed_context_size_error",
            "message": "request (1 tokens) exceeds the available context size (2 tokens)",
            "n_prompt_tokens": 300,
            "n_ctx": 200,
        }
    )

    assert overflow is not None
    assert (overflow.tokens, overflow.limit) == (300, 200)


def test_a_user_who_talks_of_overflows_is_not_heard() -> None:
    error = {
        "error": {"type": "invalid_request_error", "message": "messages.0: bad role"},
        "input": {"messages": [{"role": "usr", "content": TOO_LONG}]},
        "request": {"body": TOO_LONG},
    }

    assert recognised(error) is None


@pytest.mark.parametrize(
    "text",
    [
        "max tokens must be below 4096",
        "maximum tokens to generate is over the token limit of the plan",
        "the number of images exceeds the limit of 100",
        "the file exceeds the limit of 20 MB",
        "context_length must be at least 2048",
    ],
)
def test_what_other_systems_go_by_gives_way_to_words_about_other_sizes(text: str) -> None:
    assert recognised(text) is None


@pytest.mark.parametrize("text", ["token limit reached", "max context reached", "Input too long"])
def test_what_other_systems_go_by_does_where_nothing_speaks_against_it(text: str) -> None:
    assert recognised(text) is not None


SECRETS = [
    "sk-ant-api03-AbCdEf0123456789AbCdEf",
    "AIzaSyA0123456789abcdefghijklmnopqrstu",
    "AKIAIOSFODNN7EXAMPLE",
    "gsk_0123456789abcdefghijABCDEFGHIJ",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.abc",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_key_is_never_repeated(secret: str) -> None:
    told = recognised(f"key={secret} Authorization: Bearer {secret} {TOO_LONG}")

    assert told is not None
    assert secret[:12] not in told.message
    assert TOO_LONG in told.message


def test_the_message_is_one_short_line_around_what_was_said() -> None:
    told = recognised("what was sent: " + "word\n" * 5_000 + TOO_LONG + "\nand then" + " x" * 5_000)

    assert told is not None
    assert TOO_LONG in told.message
    assert "\n" not in told.message
    assert len(told.message) <= 302


def test_an_overflow_is_a_frozen_value() -> None:
    told = recognised(TOO_LONG)

    assert told == Overflow(
        message=TOO_LONG,
        rule="text:prompt is too long: N tokens > M maximum",
        provider="anthropic",
        tokens=208656,
        limit=200000,
    )
    with pytest.raises(AttributeError):
        told.limit = 1  # type: ignore[misc]


UNION = [wording.pattern for wording in (*SPECIFIC, *MARKS)]
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


@given(BODIES)
def test_nothing_raises_whatever_the_body(body: object) -> None:
    assert isinstance(recognised(body), Overflow | None)


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

    assert isinstance(recognised(error), Overflow | None)


@pytest.mark.parametrize(
    "thing",
    [
        HostileError(),
        Slippery(error=TOO_LONG),
        object(),
        HostileError,
        lambda: TOO_LONG,
        float("nan"),
        b"\xff",
    ],
)
def test_what_cannot_be_read_is_no_overflow(thing: object) -> None:
    assert recognised(thing) is None


def test_what_goes_on_for_ever_is_read_so_far_and_no_further() -> None:
    around: dict[str, object] = {}
    around["error"] = around
    deep: object = TOO_LONG
    for _ in range(5_000):
        deep = [deep]

    assert recognised(around) is None
    assert recognised(deep) is None
    assert recognised("[" * 40_000) is None
    assert recognised({"message": "9" * 40_000 + TOO_LONG.replace("208656", "9" * 5_000)})


@given(st.text() | st.lists(st.sampled_from(TOO_LONG.split() + RATE.split())).map(" ".join))
def test_text_without_any_mark_is_never_an_overflow(text: str) -> None:
    line = " ".join(text.split())
    is_marked = any(pattern.search(line) for pattern in UNION)

    if not is_marked:
        assert recognised(text) is None


@given(st.sampled_from(TABLE["overflows"]), st.sampled_from(["429", "Rate limit exceeded", "TPM"]))
def test_a_rate_limit_is_never_an_overflow_whatever_else_it_says(row: Row, rate: str) -> None:
    words = re.sub(r"[{}\[\]\"]", " ", said(row) if "text" in row else json.dumps(said(row)))

    assert recognised({"status_code": 429, "message": words}) is None
    if rate != "429":
        assert recognised(f"{rate}: {words}") is None


def test_the_page_about_overflows_says_what_is_so(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "overflow.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)

    exec(compile(code, "docs/overflow.md", "exec"), {})  # noqa: S102 - it is the page's own

    assert capsys.readouterr().out.strip() in page
    assert f"{len(TABLE['overflows'])} messages that are overflows" in page
    assert f"and {len(TABLE['others'])} that are not" in page
