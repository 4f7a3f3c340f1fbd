"""Transcripts of Claude Code in the making, and what reading one yields."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from cutbank.adapters.transcripts.formats.claude_code import FORMAT
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import (
    Append,
    EntryEnd,
    ImportStep,
    SkippedEntry,
    SourceProblem,
    UnknownEntry,
)
from cutbank.domain.blocks import AnyBlock

SESSION = "11111111-2222-3333-4444-555555555555"

Entry = dict[str, Any]
S = TypeVar("S", bound=ImportStep)


class Talk:
    """A transcript in the making: each entry follows the last one, unless it is told otherwise."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.added = 0
        self.last: str | None = None

    def add(self, kind: str, **fields: Any) -> str:
        self.added += 1
        entry = {
            "parentUuid": self.last,
            "isSidechain": False,
            "sessionId": SESSION,
            "type": kind,
            "uuid": f"u{self.added}",
            "timestamp": f"2026-01-01T00:00:{len(self.entries) % 60:02}.000Z",
        } | fields
        self.entries.append(entry)
        self.last = entry["uuid"]
        return str(entry["uuid"])

    def user(self, content: Any, **fields: Any) -> str:
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def result(self, call: str, content: Any = "done", **fields: Any) -> str:
        item = {"type": "tool_result", "tool_use_id": call, "content": content}
        return self.user([item], **fields)

    def says(self, message: str, *content: Entry, output: int = 1, **fields: Any) -> str:
        usage = {
            "input_tokens": 3,
            "cache_read_input_tokens": 20,
            "cache_creation_input_tokens": 100,
            "output_tokens": output,
        }
        body = {"id": message, "role": "assistant", "model": "m-1", "content": list(content)}
        return self.add("assistant", message=body | {"usage": usage}, **fields)

    def calls(self, message: str, call: str, **fields: Any) -> str:
        return self.says(message, tool_use(call), **fields)

    def boundary(self, trigger: str = "auto", **metadata: Any) -> str:
        self.last = None
        metadata = {"trigger": trigger, "preTokens": 155_000} | metadata
        return self.add("system", subtype="compact_boundary", compactMetadata=metadata)

    def summary(self, content: str = "what was said so far", **fields: Any) -> str:
        return self.user(content, isCompactSummary=True, isVisibleInTranscriptOnly=True, **fields)

    def raw(self) -> bytes:
        return b"".join(json.dumps(entry).encode() + b"\n" for entry in self.entries)


def text(text: str) -> Entry:
    return {"type": "text", "text": text}


def tool_use(call: str, **fields: Any) -> Entry:
    return {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "ls"}} | fields


class Reading:
    def __init__(self, steps: list[ImportStep]) -> None:
        self.steps = steps

    def of(self, kind: type[S]) -> list[S]:
        return [step for step in self.steps if isinstance(step, kind)]

    @property
    def blocks(self) -> list[AnyBlock]:
        return [step.block for step in self.of(Append)]

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(block.kind.value, block.text) for block in self.blocks]

    @property
    def outcomes(self) -> list[str]:
        """How each entry went: its steps since the end of the last one say."""
        found: list[str] = []
        steps: list[ImportStep] = []
        for step in self.steps:
            if isinstance(step, EntryEnd):
                found.append(outcome_of(steps))
                steps.clear()
            else:
                steps.append(step)
        return found

    @property
    def reasons(self) -> list[str]:
        return [step.reason for step in self.of(SourceProblem)]


def outcome_of(steps: list[ImportStep]) -> str:
    """How an entry went that became these steps: the worst of them says."""
    kinds = {type(step) for step in steps}
    if SourceProblem in kinds:
        return "error"
    if UnknownEntry in kinds:
        return "unknown"
    return "skipped" if SkippedEntry in kinds and Append not in kinds else "imported"


Tell = Callable[..., Reading]


def reading_of(path: Path, raw: bytes) -> Reading:
    path.write_bytes(raw)
    return Reading(list(FORMAT.read(TranscriptSource(path))))
