"""One idle worker as a process of its own, which does what it is told on stdin.

    python tests/support/idle_worker.py ADDRESS NAME '{"lease_s": 5.0, ...}' HOLDS

It says each notice as a line of JSON, and `{"about": "writing"}` when a summary is asked for.
The first HOLDS summaries wait until stdin says `go`; `stop` or its end ends the process well.
"""

import json
import os
import sys
from threading import Event
from typing import Any

import cutbank
from cutbank.adapters.runtime.compaction import from_settings
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.idle.notices import WorkerNotice
from cutbank.adapters.settings.compaction_settings import PinSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.idle_rules import IdleRules
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.summarizer import Draft, Material

PRICE = 0.25


def say(**words: Any) -> None:
    """A whole line at once: whoever is killed has said it, or nothing."""
    os.write(1, f"{json.dumps(words)}\n".encode())


class Waiting:
    """Writes for money; the first few summaries wait until they are let go."""

    name = "waiting"

    def __init__(self, holds: int) -> None:
        self.holds = holds
        self.go = Event()

    def summarize(self, material: Material) -> Draft:
        self.holds -= 1
        say(about="writing")
        if self.holds >= 0:
            self.go.wait()
        text = ExtractiveSummarizer().summarize(material).text
        return Draft(text=text, model="test/waiting", cost_usd=PRICE)


def tell(notice: WorkerNotice) -> None:
    say(**notice.to_json())


def main(address: str, name: str, rules: str, holds: str) -> None:
    writer = Waiting(int(holds))
    from_settings.make_summary_chain = lambda *_: SummaryChain((writer,))
    unpinned = Settings(pins=PinSettings(first_prompt=False, kinds=()))
    with cutbank.open(address, settings=unpinned) as store:
        scheduler = cutbank.start_scheduler(
            store, IdleRules(**json.loads(rules)), name=name, listeners=[tell]
        )
        for line in sys.stdin:
            if line == "stop\n":
                break
            writer.go.set()
        writer.go.set()
        assert scheduler.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
