"""Read what an agent needs of its transcript to go on: from the file itself, not by the readers.

`essence_of(name)` returns the sessions of a file, each as the list of its entries. Of most formats
all of a file is needed; where something is left out, the format's function says what and why.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

Sessions = list[list[Any]]


def essence_of(name: str) -> Callable[[Path], Sessions]:
    """Return what reduces the transcripts of a format."""
    return REDUCED.get(name, documents)


def documents(path: Path) -> Sessions:
    """Return the document that a file is, or that each of its lines is, whole."""
    raw = path.read_text(encoding="utf-8-sig")
    try:
        return [[json.loads(raw)]]
    except ValueError:
        return [[json.loads(line)] for line in raw.splitlines() if line.strip()]


def tau_records(path: Path) -> Sessions:
    return [[record] for record in json.loads(path.read_text())]


def swe_agent(path: Path) -> Sessions:
    """Leave out the prompt of each step, which is rebuilt from the history."""
    whole = json.loads(path.read_text())
    for step in whole["trajectory"]:
        for name in ("query", "messages"):
            step.pop(name, None)
    return [[whole]]


def openhands_v1(path: Path) -> Sessions:
    """Leave out the numbers of events, and events that OpenHands does not send, show or need."""
    root = path if (path / "events").is_dir() else path / "event_service"
    event_name = re.compile(r"event-(\d{5,})-[0-9a-fA-F-]{8,}\.json")
    found = [(event_name.fullmatch(file.name), file) for file in (root / "events").iterdir()]
    files = sorted((int(name[1]), file) for name, file in found if name)
    events = [json.loads(file.read_text()) for _, file in files]
    states = [root / name for name in ("base_state.json", "meta.json") if (root / name).exists()]
    not_needed = {"LLMCompletionLogEvent", "StreamingDeltaEvent", "TokenEvent"}
    return [
        [
            *({file.name: json.loads(file.read_text())} for file in states),
            *(event for event in events if event.get("kind") not in not_needed),
        ]
    ]


def codex(path: Path) -> Sessions:
    """Leave out events, which show what items say, except rollbacks and the thread's name."""
    lines = [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]
    needed = ("thread_rolled_back", "thread_name_updated")
    return [
        [
            line
            for line in lines
            if line.get("type") != "event_msg" or line["payload"]["type"] in needed
        ]
    ]


SHOWN_BY_COPILOT = {
    # What is shown to the user, or reports progress; no model is sent it.
    *("session.error", "session.idle", "session.info", "session.usage_info", "session.warning"),
    *("pending_messages.modified", "session.background_tasks_changed"),
    *("assistant.message_delta", "assistant.reasoning_delta", "assistant.intent"),
    *("assistant.reasoning", "assistant.streaming_delta", "assistant.message_start"),
    *("tool.execution_partial_result", "tool.execution_progress"),
    # What hooks and permissions came to stands in the events of the tools.
    *("hook.start", "hook.end", "permission.requested", "permission.completed"),
}


def copilot_cli(path: Path) -> Sessions:
    """Leave out what is only shown; what follows such an event names its parent instead."""
    above: dict[str, Any] = {}
    needed = []
    for line in path.read_bytes().splitlines():
        event = json.loads(line)
        event["parentId"] = above.get(event["parentId"], event["parentId"])
        if event["type"] in SHOWN_BY_COPILOT:
            above[event["id"]] = event["parentId"]
        else:
            needed.append(event)
    return [needed]


def pi(path: Path) -> Sessions:
    """Leave out lines that are no JSON, entries that are repeated, and when a title was written."""
    seen: set[bytes] = set()
    entries: list[Any] = []
    for raw in path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        line = raw.strip()
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if line in seen:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            seen.add(line)
        if isinstance(entry, dict) and entry.get("type") == "title":
            entry = {name: entry[name] for name in entry if name not in ("updatedAt", "pad")}
        entries.append(entry)
    return [entries]


NOT_RESUMED = {
    *("progress", "file-history-snapshot", "file-history-delta", "summary"),
    *("api-request", "api-request-shape", "api-request-blob", "api-request-resumed"),
}
"""Shown while a tool ran, kept for undo, the title of another session, or an audit."""
SAID_ONCE = ("user", "assistant", "attachment", "system", "content-replacement")


def claude_code(path: Path) -> Sessions:
    """Leave out what `claude --resume` does not need: see `NOT_RESUMED`, and

    - an entry that says again what an earlier one of the same id said;
    - lines that are no JSON;
    - of `toolUseResult`, which shows a result to the person, all but the sub-agent that it names.
    """
    values = [value for line in path.read_bytes().split(b"\n") if (value := _parsed(line)) != ...]
    home = _home(path, values)
    sessions: dict[str, list[Any]] = {}
    session_of: dict[str, str] = {}
    above: dict[str, str | None] = {}
    """Entries that are left out, and the ones that they follow."""
    said: set[str] = set()
    for value in values:
        entry = dict(value) if isinstance(value, dict) else {}
        id, kind = entry.get("uuid"), entry.get("type")
        key = home
        if entry.get("isSidechain") is True:
            parents = session_of.get(entry.get("parentUuid") or "")
            key = entry.get("agentId") or home or parents or str(id)
        if isinstance(id, str):
            session_of.setdefault(id, key)
        for name in ("parentUuid", "logicalParentUuid"):
            if isinstance(followed := entry.get(name), str) and followed in above:
                entry[name] = above[followed]
        if kind in NOT_RESUMED:
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
        sessions.setdefault(key, []).append(entry if isinstance(value, dict) else value)
    return list(sessions.values())


def _home(path: Path, values: list[Any]) -> str:
    """Return the sub-agent that a file is of; empty if it is of a session, which is a UUID."""
    said = (
        one for one in values if isinstance(one, dict) and isinstance(one.get("sessionId"), str)
    )
    first = next((one for one in said if one.get("type") in ("user", "assistant")), {})
    try:
        UUID(path.stem)
    except ValueError:
        return str(first.get("agentId") or first["uuid"]) if first.get("isSidechain") else ""
    return ""


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return ...


REDUCED: dict[str, Callable[[Path], Sessions]] = {
    "claude-code": claude_code,
    "codex": codex,
    "copilot-cli": copilot_cli,
    "oh-my-pi": pi,
    "openai-messages-tau": tau_records,
    "openhands-v1": openhands_v1,
    "pi": pi,
    "swe-agent-traj": swe_agent,
}
