"""What of a session of pi its agent needs to go on: every entry, in order, with its pointers.

Left out are lines that are no JSON, which pi passes by, and an entry that stands there twice word
for word. Of the line that holds oh-my-pi's title, when it was written and how it was filled up are
left out: it is written over in place, and nothing reads them.
"""

import json
from pathlib import Path
from typing import Any


def essence(path: Path) -> dict[str, Any]:
    """The entries of the one session in the file, by its id."""
    seen: set[bytes] = set()
    entries: list[Any] = []
    for raw in path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        line = raw.strip()
        if not line or line in seen:
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            seen.add(line)
        if isinstance(entry, dict) and entry.get("type") == "title":
            entry = {name: entry[name] for name in entry if name not in ("updatedAt", "pad")}
        entries.append(entry)
    ids = [one["id"] for one in entries if isinstance(one, dict) and one.get("type") == "session"]
    return {ids[0]: entries}
