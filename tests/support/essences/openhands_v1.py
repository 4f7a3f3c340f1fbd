"""An OpenHands conversation: its state whole, and every event in order.

Left out: the numbers in the events' names (they are counted anew), and events of three kinds that
OpenHands itself does not send, show or need again: logs of requests, pieces of streamed messages
and token ids.
"""

import json
import re
from pathlib import Path
from typing import Any

_EVENT = re.compile(r"event-(\d{5,})-[0-9a-fA-F-]{8,}\.json")
_NOT_NEEDED = {"LLMCompletionLogEvent", "StreamingDeltaEvent", "TokenEvent"}


def essence(path: Path) -> dict[str, Any]:
    root = path if (path / "events").is_dir() else path / "event_service"
    found = [(_EVENT.fullmatch(file.name), file) for file in (root / "events").iterdir()]
    files = sorted((int(name[1]), file) for name, file in found if name)
    events = [json.loads(file.read_text()) for _, file in files]
    states = {
        name: json.loads((root / name).read_text())
        for name in ("base_state.json", "meta.json")
        if (root / name).exists()
    }
    key = states["base_state.json"]["id"]
    needed = [event for event in events if event.get("kind") not in _NOT_NEEDED]
    return {key: {"states": states, "events": needed}}
