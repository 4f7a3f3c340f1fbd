"""A trajectory of SWE-agent: history, steps, and what stands around them.

Left out of each step: `query` (in older files `messages`), the prompt of the step. It repeats the
history up to there, and SWE-agent makes it anew from the history. The key is made of what was run
and how it began: the file has no id.
"""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from .mini_swe_agent import unmarked


def essence(path: Path) -> dict[str, Any]:
    whole = json.loads(path.read_text())
    history = whole["history"]
    first = next(i for i, one in enumerate(history, 1) if one.get("role") == "assistant")
    began = [whole.get("environment"), whole.get("replay_config"), *map(unmarked, history[:first])]
    told = json.dumps(began, ensure_ascii=False, separators=(",", ":"))
    digest = blake2b(told.encode(), digest_size=8).hexdigest()
    steps = whole.pop("trajectory")
    kept = [{k: v for k, v in step.items() if k not in ("query", "messages")} for step in steps]
    return {f"swe-agent-traj-{digest}": {**whole, "trajectory": kept}}
