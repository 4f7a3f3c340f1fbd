"""What the Gemini API needs of a history to go on: all of it."""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any


def essence(path: Path) -> dict[str, Any]:
    """The contents by the session's key, which is made of how they begin."""
    document = json.loads(path.read_bytes())
    contents = document["history"] if isinstance(document, dict) else document
    first = next((at for at, one in enumerate(contents, 1) if one["role"] == "model"), None)
    begins = json.dumps(contents[:first], ensure_ascii=False, separators=(",", ":"))
    key = blake2b(begins.encode(), digest_size=8).hexdigest()
    return {f"gemini-{key}": document}
