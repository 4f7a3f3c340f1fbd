"""What Copilot CLI needs of a session to go on: every event but for those that it shows only."""

import json
from pathlib import Path
from typing import Any

SHOWN = {
    # What is shown to the person, or told of passing things; no model is sent it.
    *("session.error", "session.idle", "session.info", "session.usage_info", "session.warning"),
    *("pending_messages.modified", "session.background_tasks_changed"),
    *("assistant.message_delta", "assistant.reasoning_delta", "assistant.intent"),
    *("assistant.reasoning", "assistant.streaming_delta", "assistant.message_start"),
    *("tool.execution_partial_result", "tool.execution_progress"),
    # What hooks and permissions came to stands in the events of the tools.
    *("hook.start", "hook.end", "permission.requested", "permission.completed"),
}


def essence(path: Path) -> dict[str, Any]:
    """The events by the session's id. Of one that was left out, its follower names the parent."""
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    key = next(one["data"]["sessionId"] for one in events if one["type"] == "session.start")
    above: dict[str, Any] = {}
    needed = []
    for event in events:
        event["parentId"] = above.get(event["parentId"], event["parentId"])
        if event["type"] in SHOWN:
            above[event["id"]] = event["parentId"]
        else:
            needed.append(event)
    return {key: needed}
