"""What of a rollout Codex needs to go on.

Of the lines, only events (`event_msg`) are left out: they show the person what items, turn contexts
and the next token count say as well, and Codex goes on without them. Two of them stay: a rollback,
which takes items back, and the name of the thread. Of every other line, nothing is left out.
"""

import json
from pathlib import Path
from typing import Any

_EVENTS = ("thread_rolled_back", "thread_name_updated")


def essence(path: Path) -> dict[str, Any]:
    """The lines of a rollout's thread."""
    lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
    entries = [json.loads(line) for line in lines]
    return {_thread(entries): [entry for entry in entries if _is_needed(entry)]}


def _thread(entries: list[Any]) -> str:
    first = entries[0]
    return str(first.get("payload", first)["id"])


def _is_needed(entry: Any) -> bool:
    return entry.get("type") != "event_msg" or entry["payload"]["type"] in _EVENTS
