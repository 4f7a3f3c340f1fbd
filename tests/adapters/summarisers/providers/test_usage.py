"""What a provider says of its tokens is taken where it can be true, and never makes trouble."""

import pytest
from loopback.answers import Body, Says, Tokens
from loopback.asked import Asked
from loopback.conversation import SUMMARY, judge
from loopback.providers import WAYS

from cutbank.domain.errors import SummarizerFailedError

LIES: dict[str, Tokens | Body | None] = {
    "nothing": None,
    "zero": Tokens(0, 0),
    "less than nothing": Tokens(-1_000, -50),
    "a negative part": Tokens(1_000, 50, cache_read=-2_000),
    "more than there are atoms": Tokens(10**30, 10**30),
    "more thoughts than words": Tokens(1_000, 50, reasoning=9_000),
    "an empty object": {},
}


@pytest.mark.filterwarnings("ignore::pydantic_ai.usage.UsageExtractionFailedWarning")
@WAYS
def test_a_lie_about_usage_costs_no_summary(asked: Asked, is_streamed: bool) -> None:
    for lie in LIES.values():
        try:
            draft = asked.draft(Says(SUMMARY, lie), is_streamed=is_streamed)
        except SummarizerFailedError as error:
            # Some formats cannot be read without usage; then it is a failure like another.
            assert not lie, lie
            assert error.is_transient, lie  # noqa: PT017
            continue

        judge(draft)
        counts = draft.usage.model_dump(exclude_none=True).values() if draft.usage else ()
        assert all(isinstance(count, int) and count >= 0 for count in counts), lie
        assert draft.cost_usd is None or draft.cost_usd >= 0, lie
