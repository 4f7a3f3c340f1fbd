"""One idle worker as a process of its own, which does what it is told on stdin.

    python tests/support/idle_worker.py ADDRESS NAME '{"lease_s": 5.0, ...}' HOLDS

It says what its machine's clock shows, each notice as a line of JSON, and `{"about": "writing"}`
when a summary is asked for.
The first HOLDS summaries wait until stdin says `go`; `stop` or its end ends the process well.
"""

import json
import os
import sys
from datetime import UTC, datetime
from threading import Event
from typing import Any

import cutbank
from cutbank.adapters.runtime.compaction import from_settings
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.idle.notices import Notice
from cutbank.adapters.settings.compaction_settings import PinSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.idle_rules import IdleRules
from cutbank.domain.summaries.extractive import Extractive
from cutbank.domain.summaries.summarizer import Draft, Material

PRICE = 0.25
DIED = 70
POISON = "kills whoever summarises it"


def say(**words: Any) -> None:
    """A whole line at once: whoever is killed has said it, or nothing."""
    os.write(1, f"{json.dumps(words)}\n".encode())


class Waiting:
    """Writes for money; the first few summaries wait until they are let go."""

    name = "waiting"

    def __init__(self, holds: int) -> None:
        self.holds = holds
        self.go = Event()

    def summarise(self, material: Material) -> Draft:
        if any(POISON in item.block.text for item in material.gone):
            os._exit(DIED)
        self.holds -= 1
        say(about="writing")
        if self.holds >= 0:
            self.go.wait()
        text = Extractive().summarise(material).text
        return Draft(text=text, model="test/waiting", cost_usd=PRICE)


def tell(notice: Notice) -> None:
    say(**notice.as_json())


def main(address: str, name: str, rules: str, holds: str) -> None:
    say(about="clock", shows=datetime.now(UTC).isoformat())
    writer = Waiting(int(holds))
    from_settings.chain_by = lambda *_: SummaryChain((writer,))
    unpinned = Settings(pins=PinSettings(first_prompt=False, kinds=()))
    with cutbank.open(address, settings=unpinned) as store:
        scheduler = store.start_scheduler(IdleRules(**json.loads(rules)), name=name, heard=[tell])
        for line in sys.stdin:
            if line == "stop\n":
                break
            writer.go.set()
        writer.go.set()
        assert scheduler.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
