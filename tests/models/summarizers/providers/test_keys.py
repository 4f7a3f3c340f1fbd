"""A key is where its provider looks for it, and nowhere else."""

import asyncio
import logging
import re
import traceback

import pytest
from databases import asked as rows
from loopback.answers import Refuses, Says, Why, in_turn
from loopback.asked import MATERIAL, SUMMARY, Asked
from loopback.providers import DIALECTS, KEY
from opened_stores import store_of

from cutbank import Block, CompactionOptions, LlmSummarizer, ReserveHeadroom, StoredSession
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.domain.errors import SummarizerFailedError

POLICY = ReserveHeadroom(reserve_tokens=2_000, keep_tokens=1_000)


def test_a_key_goes_to_its_provider_alone(asked: Asked) -> None:
    draft = asked.draft(Says(SUMMARY))

    (request,) = asked.server.requests
    # The client of Bedrock signs, and sends no secret.
    sent = "AWS4-HMAC-SHA256" if asked.provider.name == "bedrock" else KEY
    assert sent in " ".join(request.headers.values())
    assert KEY not in f"{request.raw.decode()} {request.path} {request.query} {draft!r}"


def test_an_error_never_tells_the_key(
    asked: Asked,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    subtests: pytest.Subtests,
) -> None:
    """Not even where the provider's own words quote it."""
    for why in (Why.WRONG_KEY, Why.INTERNAL):
        # What a client of AWS logs at DEBUG is all that it sent and heard, to whoever asks for it.
        caplog.set_level(logging.INFO)
        caplog.set_level(logging.DEBUG, logger="cutbank")

        with subtests.test(str(why)), pytest.raises(SummarizerFailedError) as caught:
            asked.draft(Refuses(why, detail=f"Incorrect API key provided: {KEY}. See {KEY}."))

        assert KEY not in "".join(traceback.format_exception(caught.value, chain=True)), why
        error: BaseException | None = caught.value
        while error is not None:
            assert KEY not in repr(error), why
            # A context that is not printed still reaches an error collector.
            error = error.__cause__ or error.__context__
        assert KEY not in caplog.text, why
        assert KEY not in "".join(capfd.readouterr()), why
        assert "\n" not in str(caught.value), why


def test_a_missing_key_is_named_and_nobody_is_asked(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the provider's own address: a server of one's own may need no key."""
    for name in asked.provider.variables:
        if "REGION" not in name:
            monkeypatch.delenv(name)

    with pytest.raises(SummarizerFailedError) as caught:
        asyncio.run(LlmSummarizer(asked.provider.model).summarize(MATERIAL))

    variable = next(iter(asked.provider.variables))
    assert re.search(rf" (needs|has no key; set) .*{variable}", str(caught.value))
    assert "\n" not in str(caught.value)
    assert not caught.value.is_transient
    assert asked.server.requests == []


@pytest.mark.parametrize("provider", DIALECTS[:1], ids=str)
def test_a_key_is_nowhere_in_the_database(asked: Asked, session: StoredSession) -> None:
    """Not even where the provider quotes it in what it refuses."""
    session.append(*(Block.user(f"go on {number}: " + "words " * 200) for number in range(40)))
    chain = SummaryChain((asked.llm(),), retries=0)
    asked.server.script = in_turn(Refuses(Why.WRONG_KEY, detail=f"no such key: {KEY}"))

    outcome = session.compact(POLICY, limit=8_000, options=CompactionOptions(chain=chain))

    stored = b"".join(
        bytes(row[0]) for row in rows(store_of(session), "SELECT state FROM stored_events")
    )
    assert (outcome.compacted, outcome.summarizer) == (True, "extractive")
    assert b"refused the key" in stored  # or this looks in the wrong place
    assert KEY.encode() not in stored
