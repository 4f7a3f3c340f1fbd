"""What providers answer, refuse, or never say: a summary, or a failure in one line."""

import asyncio
import socket

import pytest
from loopback.answers import (
    Answer,
    Body,
    BreaksOff,
    Call,
    Endless,
    Raw,
    Refuses,
    Request,
    Says,
    Stop,
    Tokens,
    Waits,
    Why,
    in_turn,
)
from loopback.asked import GOAL, MATERIAL, SUMMARY, Asked, judge
from loopback.offline import elsewhere
from loopback.providers import DIALECTS

from cutbank import LlmSummarizer, RejectedSummaryError, SummarizerFailedError, Usage


def test_a_summary_is_written_and_may_be_served(asked: Asked) -> None:
    usage = Tokens(input=1_200, output=80, cache_read=300)

    draft = asked.draft(Says(SUMMARY, usage))

    (request,) = asked.server.requests
    judge(draft)
    assert SUMMARY in draft.text
    assert set(draft.cites) >= {2, 5, 6}
    assert draft.usage
    assert (draft.usage.input, draft.usage.cache_read, draft.usage.output) == (1_200, 300, 80)
    assert draft.usage.context == 1_500
    assert not draft.was_truncated
    assert GOAL in request.raw.decode()
    assert not {"tools", "toolConfig", "functions"} & set(request.body)
    assert draft.cost_usd
    assert 0 < draft.cost_usd < 0.1


def test_an_answer_that_says_nothing_is_a_failure(asked: Asked, subtests: pytest.Subtests) -> None:
    answers = {
        "answered nothing": Says(""),
        r"\S": Says("I can't help with that.", stop=Stop.REFUSAL),
    }
    for words, answer in answers.items():
        with subtests.test(words), pytest.raises(SummarizerFailedError, match=words):
            asked.draft(answer)


one_dialect = pytest.mark.parametrize("provider", DIALECTS[:1], ids=str)
"""For rules of the summarizer itself: they are the same for every provider."""


@one_dialect
def test_an_answer_that_calls_a_tool_is_a_failure(asked: Asked) -> None:
    with pytest.raises(SummarizerFailedError, match="called a tool"):
        asked.draft(Says(calls=(Call("read", {"path": "parser.py"}),), stop=Stop.TOOL))


def test_an_answer_names_its_model_and_is_rejected_where_the_output_limit_ended_it(
    asked: Asked,
) -> None:
    cut_off = Says("## Goal\n- Comments in the par", stop=Stop.LENGTH, model="another-model-2")

    draft = asked.draft(cut_off)

    # The answers of Bedrock name no model.
    assert draft.model == "another-model-2" or asked.provider.name == "bedrock"
    assert draft.was_truncated
    with pytest.raises(RejectedSummaryError, match="truncated"):
        judge(draft)


@one_dialect
def test_what_is_longer_than_the_model_holds_is_read_in_parts(asked: Asked) -> None:
    """The server holds less than it is asked to hold, and says so in its provider's words."""
    most = 8_000

    def holds_little(request: Request) -> Answer:
        if len(request.raw) > most:
            tokens = len(request.raw) // 4
            return Refuses(Why.OVERFLOW, tokens=tokens, limit=most // 4)
        return Says(SUMMARY, Tokens(100, 10))

    asked.server.script = holds_little
    draft = asked.draft(window=9_000)

    answered = [request for request in asked.server.requests if len(request.raw) <= most]
    judge(draft)
    assert len(answered) > 1
    calls = len(answered)
    assert draft.usage == Usage(input=100 * calls, cache_read=0, cache_write=0, output=10 * calls)


@one_dialect
def test_a_model_that_holds_nothing_is_not_asked_for_ever(asked: Asked) -> None:
    with pytest.raises(SummarizerFailedError) as caught:
        asked.draft(Refuses(Why.OVERFLOW))

    assert not caught.value.is_transient
    assert len(asked.server.requests) < 60


def test_only_the_loopback_is_spoken_to() -> None:
    """The other tests here fail where that is not so; this one proves that they would."""
    with elsewhere() as seen, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as telling:
        telling.connect(("192.0.2.1", 9))  # an address of documentation; a datagram's sends nothing

    assert seen == ["socket.connect 192.0.2.1"]


LIES: tuple[Tokens | Body | None, ...] = (
    *(None, {}, Tokens(0, 0), Tokens(-1_000, -50), Tokens(10**30, 10**30)),
    *(Tokens(1_000, 50, cache_read=-2_000), Tokens(1_000, 50, reasoning=9_000)),
)


@pytest.mark.filterwarnings("ignore::pydantic_ai.usage.UsageExtractionFailedWarning")
def test_a_lie_about_usage_costs_no_summary(asked: Asked) -> None:
    for lie in LIES:
        try:
            draft = asked.draft(Says(SUMMARY, lie))
        except SummarizerFailedError as error:
            # Some formats cannot be read without usage; then it is a failure like another.
            assert not lie, lie
            assert error.is_transient, lie  # noqa: PT017
            continue

        judge(draft)
        counts = draft.usage.model_dump(exclude_none=True).values() if draft.usage else ()
        assert all(isinstance(count, int) and count >= 0 for count in counts), lie
        assert draft.cost_usd is None or draft.cost_usd >= 0, lie


REFUSALS = {
    # Whether to try again, and the words.
    Why.RATE_LIMIT: (True, "rate limit"),
    Why.INTERNAL: (True, "failed on its side"),
    Why.WRONG_KEY: (False, "refused the key"),
}


def test_a_refusal_says_whether_to_try_again_and_when(
    asked: Asked, subtests: pytest.Subtests
) -> None:
    for why, (is_transient, words) in REFUSALS.items():
        asked.server.requests.clear()
        retry_after_s = 7 if why is Why.RATE_LIMIT else None
        refusal = Refuses(why, retry_after_s=retry_after_s)

        with subtests.test(str(why)), pytest.raises(SummarizerFailedError, match=words) as caught:
            asked.draft(refusal)

        assert caught.value.is_transient == is_transient, why
        assert caught.value.retry_after_s == retry_after_s, why
        assert "\n" not in str(caught.value), why
        assert asked.provider.model in str(caught.value), why
        assert len(asked.server.requests) == 1, why


NONSENSE = (
    Raw(b"<html><body>Bad Gateway</body></html>", content_type="text/html"),
    *map(Raw, (b"", b'{"id": "msg_1", "content": [{"type": "te', b"null", b"{}")),
    Raw(bytes(range(256)) * 4, content_type="application/octet-stream"),
    Raw(b"data: hello\n\ndata: {}\n\n", content_type="text/event-stream"),
    Raw(b"<html>502 Bad Gateway</html>", 502, "text/html"),
    *(Raw(b"", 500), Raw(b"", 400), Raw(b"{}", 299)),
    Raw(b"", 302, headers={"location": "http://192.0.2.1/"}),
)


def test_nonsense_is_no_summary(asked: Asked, subtests: pytest.Subtests) -> None:
    """It is a failure in one line, or a draft that the gate rejects; never another error."""
    for nonsense in NONSENSE:
        with (
            subtests.test(str(nonsense)),
            pytest.raises((SummarizerFailedError, RejectedSummaryError)) as caught,
        ):
            judge(asked.draft(nonsense))

        assert "\n" not in str(caught.value), nonsense


def test_a_connection_that_breaks_is_worth_another_try(
    asked: Asked, subtests: pytest.Subtests
) -> None:
    for after in (0, 1, 4):
        asked.server.requests.clear()
        with subtests.test(str(after)), pytest.raises(SummarizerFailedError) as caught:
            asked.draft(BreaksOff(Says(SUMMARY), after))
        judge(asked.draft(Says(SUMMARY)))

        assert caught.value.is_transient, after
        assert len(asked.server.requests) == 2, after


@pytest.mark.parametrize(("after", "requests"), [(0, 1), (3, 1), (0, 2)])
def test_a_summary_that_is_cancelled_leaves_no_request_behind(
    asked: Asked, after: int, requests: int
) -> None:
    """Before the first word of the answer, in the middle of it, and when it is read in parts."""

    async def cancel() -> None:
        window = {"window": 3_000} if requests > 1 else {}
        writing = asyncio.ensure_future(asked.llm(**window).summarize(MATERIAL))
        await asyncio.to_thread(asked.server.wait_for_requests, requests)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing

    asked.server.script = in_turn(Waits(Says(SUMMARY), after))
    asyncio.run(cancel())

    if after or asked.provider.name != "bedrock":
        # Bedrock's client leaves a thread behind that reads until its first byte comes.
        asked.server.wait_for_departures(len(asked.server.requests))
    assert requests > 1 or len(asked.server.requests) == 1


def test_an_answer_without_an_end_comes_to_one_and_where_nobody_listens_it_is_said(
    asked: Asked,
) -> None:
    with pytest.raises(SummarizerFailedError, match="without an end"):
        asked.draft(Endless())
    asked.server.wait_for_departures(1)

    free = asked.server.url.rpartition(":")[0] + ":1"
    llm = LlmSummarizer(asked.provider.model, base_url=asked.provider.base_url(free))
    with pytest.raises(SummarizerFailedError, match="could not be reached") as caught:
        asyncio.run(llm.summarize(MATERIAL))
    assert caught.value.is_transient
