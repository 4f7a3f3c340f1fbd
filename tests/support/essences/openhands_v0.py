"""OpenHands before its SDK: every event in order, and what stands around them on a line.

Nothing is left out. A session's key is made of how its first event began: the file has no id.
"""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any


def essence(path: Path) -> dict[str, Any]:
    text = path.read_text()
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, list):
        return {_key("openhands", found): {"line": None, "events": found}}
    sessions: dict[str, Any] = {}
    for line in text.splitlines():
        whole = json.loads(line)
        events = whole.pop("history")
        sessions[_key(whole["instance_id"], events)] = {"line": whole, "events": events}
    return sessions


def _key(name: str, events: list[Any]) -> str:
    first = events[0]
    told = f"{first['id']}\n{first['timestamp']}\n{first.get('message')}"
    return f"{name}-{blake2b(told.encode(), digest_size=8).hexdigest()}"
