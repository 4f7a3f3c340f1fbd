"""A program that does not use OpenTelemetry hears and pays nothing."""

import json
import os
import subprocess
import sys

COMPACTS = """
import json, sys
from datetime import UTC, datetime

import cutbank
from cutbank import Block, CompactionOptions
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice
from cutbank.adapters.runtime.telemetry import record_notice

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

    assert json.loads(done.stdout) == [True, ["cutbank.adapters.runtime.telemetry"]]
    assert done.stderr == ""
