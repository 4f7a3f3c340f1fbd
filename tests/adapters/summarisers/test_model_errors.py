"""Whatever a provider does is one line that gives nothing away, and says whether to try again."""

from pydantic_ai import exceptions as failed

from cutbank.adapters.models.summarizers.model_access import translate_model_error
from cutbank.adapters.models.summarizers.notes_writer import TooLongError
from cutbank.domain.errors import SummarizerFailedError

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


def test_a_failure_is_one_line_that_says_whether_to_try_again_and_gives_nothing_away() -> None:
    for is_transient, failures in ((False, PERMANENT), (True, TRANSIENT)):
        for error, says in failures:
            failure = translate_model_error(error, "anthropic:m", "THE_KEY")
            line = str(failure)

            assert isinstance(failure, SummarizerFailedError), error
            assert failure.is_transient is is_transient, error
            assert says in line, error
            assert line.startswith("anthropic:m "), error
            assert not [secret for secret in (KEY, WORDS, "\n") if secret in line], error


def test_a_wait_that_was_asked_for_is_passed_on_and_a_prompt_that_is_too_long_is_named() -> None:
    failure = translate_model_error(http(failed.ModelRateLimitError, 429), "m", "K")

    assert isinstance(failure, SummarizerFailedError)
    assert failure.retry_after_s == 7.0
    too_long = http(failed.ModelContextWindowExceededError, 400)
    assert isinstance(translate_model_error(too_long, "m", "K"), TooLongError)


def test_servers_that_name_no_code_are_understood_by_their_words() -> None:
    rows: list[str] = [
        "prompt too long; exceeded max context length by 14315 tokens",
        "request (9000 tokens) exceeds the available context size (4096 tokens)",
    ]
    for message in rows:
        for status in (400, 429):
            error = failed.ModelHTTPError(status, "m", {"message": message})
            is_too_long = isinstance(translate_model_error(error, "m", "K"), TooLongError)
            assert is_too_long is (status == 400), (message, status)
