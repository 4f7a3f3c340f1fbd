"""A program that does not use OpenTelemetry, or an old one, hears and pays nothing."""

import json
import logging
import os
import subprocess
import sys
from functools import lru_cache

import pytest
from opentelemetry import metrics
from telemetry_seen import Seen

from cutbank import ReserveHeadroom, StoredSession
from cutbank.adapters.runtime.telemetry import activation

COMPACTS = """
import json, sys
from datetime import UTC, datetime

import cutbank
from cutbank import Block, CompactionOptions
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice
from cutbank.adapters.runtime.telemetry.activation import record_notice

with cutbank.open(":memory:") as store:
    session = store.session("talk")
    session.append(*(Block.user(f"question {n} " + "word " * 80) for n in range(60)))
    options = CompactionOptions(settings={"keep_tokens": "400"})
    done = session.compact(limit=8_000, options=options)
    record_notice(WorkerNotice(NoticeKind.LOOKED, worker="w", at=datetime.now(UTC), due=1))
print(json.dumps([done.compacted, [name for name in sys.modules if "telemetry" in name]]))
"""


def test_a_compaction_loads_nothing_of_it() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", COMPACTS],
        capture_output=True,
        check=True,
        env={name: value for name, value in os.environ.items() if "COVERAGE" not in name},
        text=True,
    )

    ours = "cutbank.adapters.runtime.telemetry"
    assert json.loads(done.stdout) == [True, [ours, f"{ours}.activation"]]
    assert done.stderr == ""


def test_an_old_one_is_left_alone_and_that_is_said_once(
    talk: StoredSession,
    seen: Seen,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class OldMeter:
        def create_histogram(self, name: str, unit: str = "", description: str = "") -> None: ...

    monkeypatch.setattr(metrics, "Meter", OldMeter)
    not_asked_yet = lru_cache(activation._is_new_enough.__wrapped__)
    monkeypatch.setattr(activation, "_is_new_enough", not_asked_yet)
    with caplog.at_level(logging.WARNING):
        for keep in (900, 500):
            assert talk.compact(ReserveHeadroom(keep_tokens=keep), limit=8_000).compacted

    assert caplog.text.count("it needs opentelemetry-api 1.30 or newer") == 1
    assert seen.spans == []
