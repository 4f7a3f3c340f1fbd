"""Reads the metadata of Claude Code entries: kind, usage and text."""

from typing import Any

from .....domain.blocks import Kind
from .....domain.session_events import Usage
from ..reading.fields import JsonDict, get_field, require_field

FORMAT_NAME = "claude-code"

_HARNESS_PREFIXES = (
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "<task-notification>",
    "[Request interrupted by user",
)
"""Prefixes of text in the user's role that the user did not type."""

_AUDIT = "audit of a request"
_BACKUP = "backups of edited files"

SKIPPED_ENTRY_TYPES = {
    "progress": "shown while a tool ran",
    "file-history-snapshot": _BACKUP,
    "file-history-delta": _BACKUP,
    "summary": "title of another session",
    "api-request": _AUDIT,
    "api-request-blob": _AUDIT,
    "api-request-resumed": _AUDIT,
    "api-request-shape": _AUDIT,
}
"""Types of entries without session content, and the reasons."""

KEPT_ENTRY_TYPES = frozenset(
    (
        # Program state, which Claude Code restores.
        *("agent-color", "agent-name", "agent-setting", "agent_metadata", "ai-title"),
        *("atis-latch", "bridge-session", "continued-in", "cost-state", "custom-title"),
        *("fork-context-ref", "frame-link", "history-suppression", "last-prompt", "mode"),
        *("permission-mode", "pr-link", "queue-operation", "relocated", "tag", "tools-used"),
        # Only shown to the user; other entries name it as their parent.
        *("system/agents_killed", "system/api_error", "system/away_summary"),
        *("system/bridge_status", "system/file_snapshot", "system/informational"),
        *("system/memory_saved", "system/model_fallback", "system/permission_retry"),
        *("system/scheduled_task_fire", "system/stop_hook_summary", "system/thinking"),
        "system/turn_duration",
    )
)
"""Types of entries that no model was sent, but that are needed to resume the session."""

TITLE_FIELDS = {"ai-title": "aiTitle", "custom-title": "customTitle"}
"""Types of entries that title the session, and the title's field."""


def classify_user_text(entry: JsonDict, text: str) -> Kind:
    """Return whether the user wrote it: the harness also adds text in the user's role."""
    origin = entry.get("origin")
    by_harness = (
        entry.get("isMeta") is True
        or (isinstance(origin, dict) and origin.get("kind", "human") != "human")
        or text.lstrip().startswith(_HARNESS_PREFIXES)
    )
    return Kind.DEVELOPER if by_harness else Kind.USER


def read_claude_usage(message: JsonDict) -> Usage | None:
    """Return the usage that the provider has reported so far."""
    usage = get_field(message, "usage", dict, "message.")
    if usage is None:
        return None
    counts = {
        ours: get_field(usage, theirs, int, "message.usage.")
        for ours, theirs in (
            ("input", "input_tokens"),
            ("cache_read", "cache_read_input_tokens"),
            ("cache_write", "cache_creation_input_tokens"),
            ("output", "output_tokens"),
        )
    }
    match usage.get("cache_creation"):
        case {"ephemeral_1h_input_tokens": int(written)} if written > 0:
            counts["cache_write_1h"] = written
        case _:
            pass
    return Usage(**counts)


def read_message_items(message: JsonDict) -> list[Any]:
    """Return the items of a message; plain text is one item."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return require_field(message, "content", list, "message.")


def read_message_text(entry: JsonDict) -> str:
    match entry.get("message"):
        case {"content": str(text)}:
            return text
        case {"content": list(items)}:
            texts = [item["text"] for item in items if _is_text(item)]
            return "\n".join(texts)
        case _:
            return ""


def _is_text(item: Any) -> bool:
    match item:
        case {"type": "text", "text": str()}:
            return True
        case _:
            return False
