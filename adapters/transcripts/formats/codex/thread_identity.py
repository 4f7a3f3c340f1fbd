"""Finds the session of a rollout: its own thread, which another one may have started."""

import json
from typing import Any
from uuid import UUID

from ..reading.fields import JsonDict, find_text
from ..source import TranscriptSource
from ..steps import SessionStart

_UUID_LENGTH = 36


def read_session_start(first: Any, source: TranscriptSource) -> SessionStart:
    """Return the session of a rollout, from its first line.

    A child's rollout may continue with a copy of its parent's: the first line is the child's own.
    """
    for value in (first, *source.first_values):
        meta = read_session_meta(value)
        if meta is not None:
            return SessionStart(
                meta["id"], parent_key=_parent_key(meta), project=find_text(meta, "cwd")
            )
    named = source.stem[-_UUID_LENGTH:]
    return SessionStart(named if _is_uuid(named) else source.stem)


def read_session_meta(value: Any) -> JsonDict | None:
    """Return the session metadata of a line, if it has an id."""
    match value:
        case {"type": "session_meta", "payload": {"id": str(id)} as meta} if id:
            return dict(meta)
        case {"id": str(id), "timestamp": str()} if id and "type" not in value:
            return dict(value)
        case _:
            return None


def _parent_key(meta: JsonDict) -> str | None:
    match meta:
        case {"source": {"subagent": {"thread_spawn": {"parent_thread_id": str(parent)}}}}:
            return parent if parent != meta["id"] else None
        case {"source": {"subagent": _}, "parent_thread_id": str(parent)}:
            return parent if parent and parent != meta["id"] else None
        case _:
            return None


class SpawnedAgents:
    """The calls that started other sessions, according to their outputs."""

    def __init__(self) -> None:
        self.copied = False
        """Whether the rollout began with a copy of its parent's; then the owner of a call is
        unknown.
        """
        self._calls: set[str] = set()

    def find_agent(self, call: str | None, item: JsonDict) -> str | None:
        """Return the session that the call started, if the item is its output."""
        if call is None or self.copied:
            return None
        match item:
            case {"type": "function_call", "name": "spawn_agent"}:
                self._calls.add(call)
            case {"type": "function_call_output", "output": str(output)} if call in self._calls:
                self._calls.remove(call)
                return _parse_agent_id(output)
            case _:
                pass
        return None


def _parse_agent_id(output: str) -> str | None:
    try:
        said = json.loads(output)
    except (ValueError, RecursionError):
        return None
    match said:
        case {"agent_id": str(agent)} if agent:
            return agent
        case _:
            return None


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
