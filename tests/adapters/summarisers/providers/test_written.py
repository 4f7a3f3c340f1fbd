"""Every provider's model may write the summary, whole or as a stream, in any language."""

import socket

import pytest
from loopback.answers import Answer, Call, Refuses, Request, Says, Stop, Tokens, Why
from loopback.asked import Asked
from loopback.conversation import GOAL, SUMMARY, judge
from loopback.offline import elsewhere
from loopback.providers import ALL, WAYS

from cutbank.domain.errors import RejectedSummaryError, SummarizerFailedError
from cutbank.domain.session_events import Usage


@ALL
@WAYS
def test_a_summary_is_written_and_may_be_served(asked: Asked, is_streamed: bool) -> None:
    usage = Tokens(input=1_200, output=80, cache_read=300)

    draft = asked.draft(Says(SUMMARY, usage), is_streamed=is_streamed)

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
    if asked.provider.name in {"anthropic", "openai-chat", "openai-responses", "google", "bedrock"}:
        assert draft.cost_usd
        assert 0 < draft.cost_usd < 0.1
    if asked.provider.name in {"vllm", "llama.cpp"}:
        assert draft.cost_usd is None


def test_an_answer_that_says_nothing_is_a_failure(asked: Asked, subtests: pytest.Subtests) -> None:
    answers = {
        "called a tool": Says(calls=(Call("read", {"path": "parser.py"}),), stop=Stop.TOOL),
        "answered nothing": Says(""),
        r"\S": Says("I can't help with that.", stop=Stop.REFUSAL),
    }
    for words, answer in answers.items():
        with subtests.test(words), pytest.raises(SummarizerFailedError, match=words):
            asked.draft(answer)


def test_the_model_that_answered_is_named_and_not_the_one_that_was_asked(asked: Asked) -> None:
    if asked.provider.name == "bedrock":
        pytest.skip("the answers of Bedrock name no model")

    assert asked.draft(Says(SUMMARY, model="another-model-2")).model == "another-model-2"


def test_an_answer_that_ends_at_the_output_limit_is_rejected(asked: Asked) -> None:
    draft = asked.draft(Says("## Goal\n- Comments in the par", stop=Stop.LENGTH))

    assert draft.was_truncated
    with pytest.raises(RejectedSummaryError, match="truncated"):
        judge(draft)


@ALL
def test_what_is_longer_than_the_model_holds_is_read_in_parts(asked: Asked) -> None:
    """The server holds less than it is asked to hold, and says so in its provider's words."""
    most = 8_000

    def holds_little(request: Request) -> Answer:
        if len(request.raw) > most:
            return Refuses(
                Why.OVERFLOW,
                tokens=len(request.raw) // 4,
                limit=most // 4,
                server=asked.provider.server,
            )
        return Says(SUMMARY, Tokens(100, 10))

    asked.server.script = holds_little
    draft = asked.draft(window=9_000)

    answered = [request for request in asked.server.requests if len(request.raw) <= most]
    judge(draft)
    assert len(answered) > 1
    assert draft.usage == Usage(
        input=100 * len(answered),
        cache_read=0,
        cache_write=0,
        output=10 * len(answered),
    )


@ALL
def test_a_model_that_holds_nothing_is_not_asked_for_ever(asked: Asked) -> None:
    with pytest.raises(SummarizerFailedError) as caught:
        asked.draft(Refuses(Why.OVERFLOW, server=asked.provider.server))

    assert not caught.value.is_transient
    assert len(asked.server.requests) < 60


def test_only_the_loopback_is_spoken_to() -> None:
    """The other tests here fail where that is not so; this one proves that they would."""
    with elsewhere() as seen, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as telling:
        telling.connect(("192.0.2.1", 9))  # an address of documentation; a datagram's sends nothing

    assert seen == ["socket.connect 192.0.2.1"]
