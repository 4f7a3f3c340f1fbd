"""What of a transcript `claude --resume` needs: every entry, in the order of the file, but

- `progress`: shown while a tool ran. Entries may follow one: then they follow what it follows;
- `file-history-*`: where backups of edited files lie, for the program's own undo;
- `summary`: the title of another session;
- `api-request*`: the audit of requests that were sent;
- an entry that says again what an earlier one of the same id said;
- lines that are no JSON;
- of `toolUseResult`, which shows a result to the person, all but the sub-agent that it names.
"""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

LEFT_OUT = (
    "progress",
    "file-history-snapshot",
    "file-history-delta",
    "summary",
    "api-request",
    "api-request-shape",
    "api-request-blob",
    "api-request-resumed",
)
SAID_ONCE = ("user", "assistant", "attachment", "system", "content-replacement")


def essence(path: Path) -> dict[str, Any]:
    """The entries of each session in the file."""
    values = list(_values(path))
    sessions = _Sessions(path.stem, values)
    above: dict[str, str | None] = {}
    """Entries that are left out, and the ones that they follow."""
    said: set[str] = set()
    for value in values:
        key = sessions.of(value)
        if not isinstance(value, dict):
            sessions.add(key, value)
            continue
        entry = dict(value)
        id = entry.get("uuid")
        for name in ("parentUuid", "logicalParentUuid"):
            if isinstance(above_it := entry.get(name), str) and above_it in above:
                entry[name] = above[above_it]
        kind = entry.get("type")
        if kind in LEFT_OUT:
            if isinstance(id, str):
                above[id] = entry.get("parentUuid")
            continue
        if kind in SAID_ONCE:
            parts = [entry.get(name) for name in ("subtype", "message", "attachment", "content")]
            again = json.dumps([kind, id or value, *parts])
            if again in said:
                continue
            said.add(again)
        shown = entry.pop("toolUseResult", None)
        if isinstance(shown, dict) and isinstance(shown.get("agentId"), str):
            entry["toolUseResult"] = {"agentId": shown["agentId"]}
        sessions.add(key, entry)
    return sessions.entries


class _Sessions:
    """Whose entry is whose: a sub-agent's may lie between those of the session it works for."""

    def __init__(self, stem: str, values: list[Any]) -> None:
        first: dict[str, Any] = next((value for value in values if _is_said(value)), {})
        self.entries: dict[str, list[Any]] = {}
        self.of_entry: dict[str, str] = {}
        self.named = stem if _is_uuid(stem) else first.get("sessionId", stem)
        self.home = self.named
        self.is_agent = not _is_uuid(stem) and first.get("isSidechain") is True
        if self.is_agent:
            agent = first.get("agentId")
            self.home += f"/agent-{agent}" if agent else f"/sidechain-{first['uuid']}"

    def of(self, value: Any) -> str:
        key = self.home
        if isinstance(value, dict) and value.get("isSidechain") is True:
            if agent := value.get("agentId"):
                key = f"{self.named}/agent-{agent}"
            elif not self.is_agent:
                above = self.of_entry.get(value.get("parentUuid") or "", self.home)
                key = above if above != self.home else f"{self.named}/sidechain-{value['uuid']}"
        if isinstance(value, dict) and isinstance(value.get("uuid"), str):
            self.of_entry.setdefault(value["uuid"], key)
        return key

    def add(self, key: str, entry: Any) -> None:
        self.entries.setdefault(key, []).append(entry)


def _values(path: Path) -> list[Any]:
    values = []
    for line in path.read_bytes().split(b"\n"):
        try:
            values.append(json.loads(line))
        except ValueError:
            continue
    return values


def _is_said(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") in ("user", "assistant")
        and isinstance(value.get("sessionId"), str)
    )


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
