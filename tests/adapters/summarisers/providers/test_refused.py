"""What a provider refuses is told in one line, and says whether to try again."""

from typing import NamedTuple

import pytest
from loopback.answers import Refuses, Says, Why
from loopback.asked import Asked
from loopback.conversation import SUMMARY, judge
from loopback.providers import WAYS

from cutbank.domain.errors import SummariserFailedError


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


@pytest.mark.parametrize("why", REFUSALS)
@WAYS
def test_a_refusal_says_whether_to_try_again(asked: Asked, why: Why, is_streamed: bool) -> None:
    # Google has one status for both.
    is_quota = why is Why.QUOTA and asked.provider.name == "google"
    expected = REFUSALS[Why.RATE_LIMIT if is_quota else why]

    with pytest.raises(SummariserFailedError, match=expected.words) as caught:
        asked.draft(Refuses(why), is_streamed=is_streamed)

    assert caught.value.is_transient == expected.is_transient
    assert "\n" not in str(caught.value)
    assert asked.provider.model in str(caught.value)
    assert len(asked.server.requests) == 1  # whether to try again is not the client's to decide


def test_how_long_to_wait_is_what_the_provider_said(asked: Asked) -> None:
    with pytest.raises(SummariserFailedError) as caught:
        asked.draft(Refuses(Why.RATE_LIMIT, retry_after_s=7))

    assert caught.value.retry_after_s == pytest.approx(7)


def test_who_tries_again_is_answered(asked: Asked) -> None:
    answers = (Refuses(Why.RATE_LIMIT), Says(SUMMARY))

    with pytest.raises(SummariserFailedError):
        asked.draft(*answers)
    judge(asked.draft())

    assert len(asked.server.requests) == 2
