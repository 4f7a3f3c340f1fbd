"""Lost connections, servers that never answer, and answers that are none."""

import asyncio

import pytest
from loopback.answers import Answer, BreaksOff, Endless, Raw, Says, Waits, in_turn
from loopback.asked import Asked
from loopback.conversation import MATERIAL, SUMMARY, judge
from loopback.gates import Gate
from loopback.providers import WAYS

from cutbank.domain.errors import RejectedSummaryError, SummarizerFailedError

NONSENSE = {
    "a page of HTML": Raw(b"<html><body>Bad Gateway</body></html>", content_type="text/html"),
    "nothing": Raw(b""),
    "half of a JSON text": Raw(b'{"id": "msg_1", "content": [{"type": "te'),
    "words": Raw(b"upstream connect error or disconnect/reset before headers"),
    "bytes": Raw(bytes(range(256)) * 4, content_type="application/octet-stream"),
    "null": Raw(b"null"),
    "a list": Raw(b"[]"),
    "an empty object": Raw(b"{}"),
    "another object": Raw(b'{"status": "ok", "uptime": 12}'),
    "a number": Raw(b"1"),
    "events of nobody": Raw(b"data: hello\n\ndata: {}\n\n", content_type="text/event-stream"),
    "a page with an error": Raw(b"<html>502 Bad Gateway</html>", 502, "text/html"),
    "an error without words": Raw(b"", 500),
    "a refusal without words": Raw(b"", 400),
    "a redirection": Raw(b"", 302, headers={"location": "http://192.0.2.1/"}),
    "a status of nobody": Raw(b"{}", 299),
}


@WAYS
def test_nonsense_is_no_summary(asked: Asked, is_streamed: bool, subtests: pytest.Subtests) -> None:
    """It is a failure in one line, or a draft that the gate rejects; never another error."""
    for nonsense in NONSENSE.values():
        with (
            subtests.test(str(nonsense)),
            pytest.raises((SummarizerFailedError, RejectedSummaryError)) as caught,
        ):
            judge(asked.draft(nonsense, is_streamed=is_streamed))

        assert "\n" not in str(caught.value), nonsense


@WAYS
def test_a_connection_that_breaks_is_worth_another_try(
    asked: Asked, is_streamed: bool, subtests: pytest.Subtests
) -> None:
    for after in (0, 1, 4):
        asked.server.requests.clear()
        with subtests.test(str(after)), pytest.raises(SummarizerFailedError) as caught:
            asked.draft(BreaksOff(Says(SUMMARY), after), is_streamed=is_streamed)
        judge(asked.draft(Says(SUMMARY)))

        assert caught.value.is_transient, after
        assert len(asked.server.requests) == 2, after


@pytest.mark.parametrize("after", [0, 3])
def test_a_summary_that_is_cancelled_stops_the_request(asked: Asked, after: int) -> None:
    """Before the first word of the answer, and in the middle of it."""
    _cancelled_while(asked, Waits(Gate(), Says(SUMMARY), after))

    if after or asked.provider.name != "bedrock":
        # Bedrock's client leaves a thread behind that reads until its first byte comes.
        asked.server.wait_for_departures(1)
        assert len(asked.server.departed) == 1
    assert len(asked.server.requests) == 1


def test_a_summary_in_parts_that_is_cancelled_leaves_no_request_behind(asked: Asked) -> None:
    if asked.provider.name == "bedrock":
        pytest.skip("the client of Bedrock reads on in a thread until its first byte comes")

    _cancelled_while(asked, Waits(Gate(), Says(SUMMARY)), requests=2, window=3_000)

    asked.server.wait_for_departures(len(asked.server.requests))


def test_an_answer_without_an_end_comes_to_one(asked: Asked) -> None:
    """Whatever a server sends, no more is read than a summary could be."""
    with pytest.raises(SummarizerFailedError, match="without an end"):
        asked.draft(Endless())

    asked.server.wait_for_departures(1)


def test_nobody_listens(asked: Asked) -> None:
    llm = asked.llm()
    at = asked.server.url
    free = at.rpartition(":")[0] + ":1"

    with pytest.raises(SummarizerFailedError) as caught:
        asyncio.run(
            type(llm)(asked.provider.model, base_url=asked.provider.base_url(free)).summarize(
                MATERIAL
            )
        )

    assert caught.value.is_transient
    assert "could not be reached" in str(caught.value)


def _cancelled_while(asked: Asked, answer: Answer, requests: int = 1, **options: int) -> None:
    async def cancelled() -> None:
        writing = asyncio.ensure_future(asked.llm(**options).summarize(MATERIAL))
        await asyncio.to_thread(asked.server.wait_for_requests, requests)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing

    asked.server.script = in_turn(answer)
    asyncio.run(cancelled())
