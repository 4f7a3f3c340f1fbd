"""In a program that does not use OpenTelemetry nothing is looked for, imported or logged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
