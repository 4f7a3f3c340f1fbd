"""A program that does not use OpenTelemetry, or an old one, hears and pays nothing."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import metrics
from telemetry_seen import Seen

from cutbank import StoredSession
from cutbank.adapters.runtime.telemetry import activation
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

COMPACTS = """
import json, sys
from datetime import UTC, datetime
from importlib.abc import MetaPathFinder


class Watches(MetaPathFinder):
    asked = []

    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == "opentelemetry":
            self.asked.append(name)
            if "blocked" in sys.argv:
                raise ModuleNotFoundError(name)
        return None


sys.meta_path.insert(0, Watches())

import cutbank
from cutbank import Block, CompactionOptions
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice
from cutbank.adapters.runtime.telemetry.activation import record_notice

with cutbank.open(":memory:") as store:
    session = store.session("talk")
    session.append(*(Block.user(f"question {n} " + "word " * 80) for n in range(60)))
    done = session.compact(
        limit=8_000, options=CompactionOptions(settings={"keep_tokens": "400"})
    )
    record_notice(WorkerNotice(NoticeKind.LOOKED, worker="w", at=datetime.now(UTC), due=1))
print(json.dumps([done.compacted, Watches.asked, [m for m in sys.modules if "telemetry" in m]]))
"""


@pytest.mark.parametrize("where", ["blocked", "installed"])
def test_a_compaction_asks_for_nothing_of_it(tmp_path: Path, where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMPACTS, where],
        cwd=tmp_path,
        capture_output=True,
        check=True,
        env={name: value for name, value in os.environ.items() if "COVERAGE" not in name},
        text=True,
    )

    compacted, asked, loaded = json.loads(done.stdout)
    assert compacted
    assert asked == []
    assert loaded == [
        "cutbank.adapters.runtime.telemetry",
        "cutbank.adapters.runtime.telemetry.activation",
    ]
    assert done.stderr == ""


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
