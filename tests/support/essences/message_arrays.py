"""Message arrays: whole and unchanged, each under the key that its beginning and name make."""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

SYSTEM = ("system", "developer")


def bodies(path: Path, *fields: str) -> dict[str, Any]:
    """Each array or body of the file by its session's key; `fields` are where messages stand."""
    raw = path.read_text(encoding="utf-8-sig")
    try:
        found = [json.loads(raw)]
    except ValueError:
        found = [json.loads(line) for line in raw.splitlines() if line.strip()]
    keyed: dict[str, Any] = {}
    for one in found:
        key = name = _key(path.stem, _messages(one, fields))
        number = 1
        while name in keyed:
            number += 1
            name = f"{key}-{number}"
        keyed[name] = one
    return keyed


def _messages(body: Any, fields: tuple[str, ...]) -> list[Any]:
    if isinstance(body, list):
        return body
    messages: list[Any] = []
    for field in fields:
        value = body.get(field, [])
        messages += [{"role": "user", "content": value}] if isinstance(value, str) else value
    return messages


def _key(stem: str, messages: list[Any]) -> str:
    first = next((at for at, one in enumerate(messages) if one.get("role") not in SYSTEM), 0)
    begins = json.dumps(messages[: first + 1], ensure_ascii=False, separators=(",", ":"))
    mark = blake2b(begins.encode(), digest_size=8).hexdigest()[:8]
    return stem if mark in stem else f"{stem}-{mark}"
