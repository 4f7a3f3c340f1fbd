"""A key is where its provider looks for it, and nowhere else."""

import asyncio
import logging
import re
import traceback

import pytest
from loopback.answers import Refuses, Says, Why
from loopback.asked import MATERIAL, SUMMARY, Asked
from loopback.providers import KEY

from cutbank.adapters.models.summarizers.llm_summarizer import LlmSummarizer
from cutbank.domain.errors import SummarizerFailedError


def test_a_key_goes_to_its_provider_alone(asked: Asked) -> None:
    draft = asked.draft(Says(SUMMARY))

    (request,) = asked.server.requests
    headers = " ".join(request.headers.values())
    if asked.provider.name == "bedrock":
        assert "AWS4-HMAC-SHA256" in headers  # it signs, and sends no secret
    else:
        assert KEY in headers
    assert KEY not in request.raw.decode()
    assert KEY not in request.path + request.query
    assert KEY not in repr(draft)


def test_an_error_never_tells_the_key(
    asked: Asked,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    subtests: pytest.Subtests,
) -> None:
    """Not even where the provider's own words quote it."""
    for why in (Why.WRONG_KEY, Why.EXPIRED_KEY, Why.FORBIDDEN, Why.INTERNAL):
        # What a client of AWS logs at DEBUG is all that it sent and heard, to whoever asks for it.
        caplog.set_level(logging.INFO)
        caplog.set_level(logging.DEBUG, logger="cutbank")

        with subtests.test(str(why)), pytest.raises(SummarizerFailedError) as caught:
            asked.draft(Refuses(why, detail=f"Incorrect API key provided: {KEY}. See {KEY}."))

        assert KEY not in "".join(traceback.format_exception(caught.value, chain=True)), why
        error: BaseException | None = caught.value
        while error is not None:
            assert KEY not in repr(error), why
            # A context that is not printed is there still, for whoever collects errors.
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
