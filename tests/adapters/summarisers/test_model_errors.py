"""Whatever a provider does is one line that gives nothing away, and says whether to try again."""

import pytest
from pydantic_ai import exceptions as failed

from cutbank.adapters.models.summarizers.hierarchical_summary import TooLongError
from cutbank.adapters.models.summarizers.model_errors import told
from cutbank.domain.errors import SummariserFailedError

KEY = "sk-live-0123456789"
WORDS = "the user's own words"


def http(category: type[failed.ModelAPIError] | None, status: int, **more: str) -> Exception:
    body = {"error": {"message": f"{WORDS} {KEY}"}}
    return failed.ModelHTTPError.for_category(
        category,  # type: ignore[arg-type]
        status_code=status,
        model_name="m",
        body=body,
        headers={"retry-after": "7", "authorization": KEY},
        provider_error_code=more.get("code"),
        provider_error_type=more.get("type"),
    )


PERMANENT = [
    (http(failed.ModelAuthenticationError, 401), "refused the key (HTTP 401); set THE_KEY"),
    (http(failed.ModelQuotaExceededError, 402, code="insufficient_quota"), "insufficient_quota"),
    (http(failed.ModelNotFoundError, 404), "does not exist there (HTTP 404)"),
    (http(failed.ModelRequestRejectedError, 400, type="invalid_request_error"), "rejected"),
    (http(None, 418), "rejected the request (HTTP 418)"),
    (failed.ContentFilterError(WORDS), "content filter"),
    (failed.UserError(f"{WORDS} {KEY}"), "cannot be asked"),
    (RuntimeError(f"{WORDS} {KEY}"), "failed with a RuntimeError"),
    (type("NoCredentialsError", (Exception,), {})(KEY), "has no key; set THE_KEY"),
]
TRANSIENT = [
    (http(failed.ModelRateLimitError, 429), "rate limited (HTTP 429)"),
    (http(failed.ModelOverloadedError, 529, type="overloaded_error"), "overloaded"),
    (http(failed.ModelServerError, 500), "failed on its side"),
    (http(None, 503), "failed on its side"),
    (failed.ModelTimeoutError("m", WORDS), "did not answer in time"),
    (failed.ModelRequestTimeout("m", 3.0), "did not answer in time"),
    (failed.ModelConnectionError("m", WORDS), "the connection was lost"),
    (failed.ModelAPIError("m", WORDS, provider_error_code=f"{WORDS}!"), "broke off"),
    (failed.UnexpectedModelBehavior(WORDS, KEY), "cannot be read"),
    (KeyError(WORDS), "cannot be read"),
    (ConnectionResetError(WORDS), "the connection was lost"),
    (TimeoutError(WORDS), "did not answer in time"),
    (type("ReadTimeout", (Exception,), {})(WORDS), "did not answer in time"),
]


@pytest.mark.parametrize(("error", "says"), PERMANENT)
def test_what_will_fail_again_is_not_tried_again(error: Exception, says: str) -> None:
    failure = told(error, "anthropic:m", "THE_KEY")

    assert isinstance(failure, SummariserFailedError)
    assert says in str(failure)
    assert not failure.is_transient


@pytest.mark.parametrize(("error", "says"), TRANSIENT)
def test_what_may_pass_is_worth_another_try(error: Exception, says: str) -> None:
    failure = told(error, "anthropic:m", "THE_KEY")

    assert isinstance(failure, SummariserFailedError)
    assert says in str(failure)
    assert failure.is_transient


@pytest.mark.parametrize("error", [error for error, _ in PERMANENT + TRANSIENT])
def test_neither_key_nor_conversation_is_in_the_line(error: Exception) -> None:
    line = str(told(error, "anthropic:m", "THE_KEY"))

    assert line.startswith("anthropic:m ")
    assert KEY not in line
    assert WORDS not in line
    assert "\n" not in line


def test_a_wait_that_was_asked_for_is_passed_on() -> None:
    failure = told(http(failed.ModelRateLimitError, 429), "m", "K")

    assert isinstance(failure, SummariserFailedError)
    assert failure.retry_after_s == 7.0


def test_a_prompt_that_is_too_long_is_for_whoever_can_make_it_shorter() -> None:
    error = http(failed.ModelContextWindowExceededError, 400)

    assert isinstance(told(error, "m", "K"), TooLongError)


@pytest.mark.parametrize(
    "message",
    [
        "prompt too long; exceeded max context length by 14315 tokens",
        "request (9000 tokens) exceeds the available context size (4096 tokens)",
    ],
)
def test_servers_that_name_no_code_are_understood_by_their_words(message: str) -> None:
    def refused(status: int) -> Exception:
        return told(failed.ModelHTTPError(status, "m", {"message": message}), "m", "K")

    assert isinstance(refused(400), TooLongError)
    assert not isinstance(refused(429), TooLongError)
