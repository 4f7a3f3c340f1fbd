"""A trajectory of mini-SWE-agent: its messages, and what stands around them.

Nothing is left out. The key is made of how the run began: the file has no id of it.
"""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any


def essence(path: Path) -> dict[str, Any]:
    whole = json.loads(path.read_text())
    messages = whole if isinstance(whole, list) else whole["messages"]
    named = None if isinstance(whole, list) else whole.get("instance_id")
    first = next(i for i, one in enumerate(messages, 1) if one.get("role") == "assistant")
    told = json.dumps(
        [named, *map(unmarked, messages[:first])], ensure_ascii=False, separators=(",", ":")
    )
    digest = blake2b(told.encode(), digest_size=8).hexdigest()
    return {f"mini-swe-agent-{digest}": whole}


def unmarked(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without its marks for the cache."""
    plain = {name: value for name, value in message.items() if name != "cache_control"}
    if isinstance(plain["content"], list):
        plain["content"] = [
            {name: value for name, value in item.items() if name != "cache_control"}
            for item in plain["content"]
        ]
    return plain
