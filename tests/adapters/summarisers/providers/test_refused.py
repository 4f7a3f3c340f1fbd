"""What a provider refuses is told in one line, and says whether to try again."""

from typing import NamedTuple

import pytest
from loopback.answers import Refuses, Why
from loopback.asked import Asked
from loopback.providers import WAYS

from cutbank.domain.errors import SummarizerFailedError


class Expected(NamedTuple):
    is_transient: bool
    words: str


REFUSALS = {
    Why.RATE_LIMIT: Expected(is_transient=True, words="rate limit"),
    Why.OVERLOADED: Expected(is_transient=True, words="overloaded|failed on its side"),
    Why.INTERNAL: Expected(is_transient=True, words="failed on its side"),
    Why.QUOTA: Expected(is_transient=False, words="quota|credit|rejected"),
    Why.WRONG_KEY: Expected(is_transient=False, words="refused the key"),
    Why.EXPIRED_KEY: Expected(is_transient=False, words="refused the key"),
    Why.FORBIDDEN: Expected(is_transient=False, words="refused the key|rejected|does not exist"),
    Why.UNKNOWN_MODEL: Expected(is_transient=False, words="does not exist|rejected"),
    Why.OUTPUT_LIMIT: Expected(is_transient=False, words="rejected"),
}


@WAYS
def test_a_refusal_says_whether_to_try_again(
    asked: Asked, is_streamed: bool, subtests: pytest.Subtests
) -> None:
    for why in REFUSALS:
        asked.server.requests.clear()
        # Google has one status for both.
        is_quota = why is Why.QUOTA and asked.provider.name == "google"
        expected = REFUSALS[Why.RATE_LIMIT if is_quota else why]

        with (
            subtests.test(str(why)),
            pytest.raises(SummarizerFailedError, match=expected.words) as caught,
        ):
            asked.draft(Refuses(why), is_streamed=is_streamed)

        assert caught.value.is_transient == expected.is_transient, why
        assert "\n" not in str(caught.value), why
        assert asked.provider.model in str(caught.value), why
        assert len(asked.server.requests) == 1, why


def test_how_long_to_wait_is_what_the_provider_said(asked: Asked) -> None:
    with pytest.raises(SummarizerFailedError) as caught:
        asked.draft(Refuses(Why.RATE_LIMIT, retry_after_s=7))

    assert caught.value.retry_after_s == pytest.approx(7)
