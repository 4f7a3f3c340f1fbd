"""Sessions of pi in the making, and what pi itself would send of them."""

import json
from pathlib import Path
from typing import Any

from transcripts import import_file

from cutbank import FileReport, HistoryView, SessionStore

SESSION = "01900000-0000-7000-8000-000000000001"

Entry = dict[str, Any]


class Talk:
    """A session in the making: each entry follows the last one, unless it is told otherwise."""

    def __init__(self, version: int | None = 3, **header: Any) -> None:
        self.version = version
        first: Entry = {"type": "session", "id": SESSION, "timestamp": _time(0), "cwd": "/srv/ford"}
        self.entries: list[Entry] = [first | ({"version": version} if version else {}) | header]
        self.added = 0
        self.last: str | None = None

    def add(self, kind: str, **fields: Any) -> str:
        """Add an entry; returns its id, by which others may follow it: `parentId=id`."""
        self.added += 1
        id = f"{self.added:08x}"
        pointers = {"id": id, "parentId": self.last} if self.version else {}
        entry = {"type": kind, **pointers, "timestamp": _time(self.added)} | fields
        self.entries.append(entry)
        self.last = entry.get("id")
        return id

    def message(self, role: str, parent: Any = ..., **message: Any) -> str:
        pointers = {} if parent is ... else {"parentId": parent}
        said = {"role": role, **message, "timestamp": 1_767_225_600_000 + self.added}
        return self.add("message", message=said, **pointers)

    def user(self, content: Any, parent: Any = ...) -> str:
        return self.message("user", parent, content=_items(content))

    def says(self, *content: Any, parent: Any = ..., **message: Any) -> str:
        items = [item for one in content for item in _items(one)]
        fields = {"api": "anthropic-messages", "provider": "anthropic", "model": "m-1"}
        ended = {"usage": usage(), "stopReason": "stop"}
        return self.message("assistant", parent, content=items, **(fields | ended | message))

    def calls(self, call: str, parent: Any = ..., **arguments: Any) -> str:
        return self.says(tool_call(call, **arguments), parent=parent, stopReason="toolUse")

    def result(self, call: str, content: Any = "done", **message: Any) -> str:
        fields = {"toolCallId": call, "toolName": "read", "isError": False}
        return self.message("toolResult", content=_items(content), **(fields | message))

    def compacts(self, summary: str, **fields: Any) -> str:
        return self.add("compaction", **({"summary": summary, "tokensBefore": 900} | fields))

    def raw(self) -> bytes:
        return b"".join(json.dumps(entry).encode() + b"\n" for entry in self.entries)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.raw())
        return path


def usage(**counts: Any) -> Entry:
    cost = {"input": 0.1, "output": 0.2, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.3}
    told = {"input": 3, "output": 7, "cacheRead": 20, "cacheWrite": 100, "totalTokens": 130}
    return {**told, "cost": cost} | counts


def tool_call(call: str, **arguments: Any) -> Entry:
    return {"type": "toolCall", "id": call, "name": "read", "arguments": arguments or {"path": "a"}}


def sent(entries: list[Entry], leaf: str) -> list[str]:
    """What pi itself would send at a leaf: the newest summary on the way there, what was kept, and
    what followed; or all of it."""
    by_id = {entry["id"]: entry for entry in entries if "parentId" in entry}
    path: list[Entry] = []
    at: str | None = leaf
    while at:
        path.insert(0, by_id[at])
        at = by_id[at]["parentId"]
    newest = max((n for n, entry in enumerate(path) if entry["type"] == "compaction"), default=None)
    if newest is None:
        return [text for entry in path for text in _texts(entry)]
    compaction = path[newest]
    ids = [entry["id"] for entry in path[:newest]]
    first = compaction.get("firstKeptEntryId")
    kept = path[ids.index(first) : newest] if first in ids else []
    texts = [text for entry in [*kept, *path[newest + 1 :]] for text in _texts(entry)]
    return [compaction["summary"], *texts]


def shown(view: HistoryView) -> list[str]:
    summary = [view.summary.text] if view.summary else []
    return summary + [_spelt(entry.block.kind, entry.block.text) for entry in view.entries]


def imported(store: SessionStore, path: Path) -> FileReport:
    report = import_file(store, path)
    assert report.errors == []
    assert report.complete
    return report


def _spelt(kind: str, text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True) if kind == "tool_call" else text


def _texts(entry: Entry) -> list[str]:
    if entry["type"] != "message":
        return []
    texts: list[str] = []
    for item in entry["message"]["content"]:
        match item:
            case {"type": "toolCall"}:
                texts.append(json.dumps(item["arguments"], sort_keys=True))
            case {"text": text} | {"thinking": text}:
                texts.append(text)
            case _:
                raise AssertionError(item)
    return texts


def _items(content: Any) -> list[Entry]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else [content]


def _time(second: int) -> str:
    return f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z"
