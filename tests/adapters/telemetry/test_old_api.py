"""An API that is too old for what is asked of it."""

import logging
from collections.abc import Iterator

import pytest
from opentelemetry import metrics
from telemetry_seen import Seen

from cutbank import StoredSession
from cutbank.adapters.runtime.telemetry import activation
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom


@pytest.fixture
def _old(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    class OldMeter(metrics.NoOpMeter):
        def create_histogram(  # type: ignore[override]
            self, name: str, unit: str = "", description: str = ""
        ) -> None:
            raise AssertionError("nothing is asked of it")

    monkeypatch.setattr(metrics, "Meter", OldMeter)
    activation._is_new_enough.cache_clear()
    yield
    activation._is_new_enough.cache_clear()


@pytest.mark.usefixtures("_old")
def test_is_left_alone_and_that_is_said_once(
    talk: StoredSession, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for keep in (900, 500):
            outcome = talk.compact(ReserveHeadroom(keep_tokens=keep), limit=8_000)
            assert outcome.compacted

    assert caplog.text.count("it needs opentelemetry-api 1.30 or newer") == 1
    assert seen.spans == []
