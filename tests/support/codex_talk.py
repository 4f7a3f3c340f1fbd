"""Rollouts of Codex in the making, and what reading one yields."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from claude_code_talk import Reading

from cutbank.adapters.transcripts.formats.codex import FORMAT
from cutbank.adapters.transcripts.formats.source import TranscriptSource

THREAD = "019b0000-0000-7000-8000-000000000001"
PARENT = "019b0000-0000-7000-8000-000000000002"

WindowItem = dict[str, Any]


class Rollout:
    def __init__(self, thread: str = THREAD, **meta: Any) -> None:
        self.lines: list[WindowItem] = []
        self.total: Counter[str] = Counter()
        self.add("session_meta", {"id": thread, "cwd": "/here", "cli_version": "0.1"} | meta)

    def add(self, kind: str, payload: Any, **more: Any) -> int:
        time = f"2026-01-01T00:{len(self.lines) // 60:02}:{len(self.lines) % 60:02}.000Z"
        self.lines.append({"timestamp": time, "type": kind, "payload": payload} | more)
        return len(self.lines)

    def item(self, kind: str, **fields: Any) -> int:
        return self.add("response_item", {"type": kind} | fields)

    def event(self, kind: str, **fields: Any) -> int:
        return self.add("event_msg", {"type": kind} | fields)

    def user(self, *texts: str | WindowItem) -> int:
        return self.add("response_item", message("user", *texts))

    def says(self, *texts: str) -> int:
        return self.add("response_item", message("assistant", *texts))

    def calls(self, call: str, **fields: Any) -> int:
        return self.item(
            "function_call", **{"name": "ls", "arguments": "{}", "call_id": call} | fields
        )

    def returns(self, call: str, output: Any = "done") -> int:
        return self.item("function_call_output", call_id=call, output=output)

    def model(self, name: str) -> int:
        return self.add("turn_context", {"model": name, "cwd": "/here"})

    def counts(self, read: int, *, output: int = 0) -> int:
        last = {"input_tokens": read, "output_tokens": output, "total_tokens": read + output}
        self.total += Counter(last)
        return self.event(
            "token_count", info={"total_token_usage": self.total, "last_token_usage": last}
        )

    def compacts(self, *history: WindowItem, said: str = "", **fields: Any) -> int:
        return self.add("compacted", {"message": said, "replacement_history": [*history]} | fields)

    def raw(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)


def message(role: str, *texts: str | WindowItem) -> WindowItem:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} if isinstance(text, str) else text for text in texts]
    return {"type": "message", "role": role, "content": content}


def sealed(**fields: Any) -> WindowItem:
    """A summary that only the provider can read."""
    return {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"} | fields


def read_at(path: Path, told: Rollout | bytes) -> Reading:
    path.write_bytes(told if isinstance(told, bytes) else told.raw())
    return Reading(list(FORMAT.read(TranscriptSource(path))))
