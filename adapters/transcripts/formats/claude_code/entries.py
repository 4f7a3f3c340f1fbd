"""Reads Claude Code entries that are not messages: kinds, usage, the prompt queue and audits."""

from dataclasses import InitVar, dataclass, field
from typing import Any

from .....domain.blocks import BlockKind
from .....domain.session_events import Usage
from ..entry_steps import NOT_SENT
from ..fields import JsonDict, get_field, read_usage, require_field
from ..steps import ReportedCall, RequestParameters

FORMAT_NAME = "claude-code"
SYNTHETIC_MODEL = "<synthetic>"
"""The model name of messages that no model wrote."""

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
} | dict.fromkeys(
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
    ),
    NOT_SENT,
)
"""Types of entries without content of the session, each with the reason."""

TITLE_FIELDS = {"ai-title": "aiTitle", "custom-title": "customTitle"}
"""Types of entries that title the session, and the title's field."""


def classify_user_text(entry: JsonDict, text: str) -> BlockKind:
    """Return whether the user wrote it: the harness also adds text in the user's role."""
    origin = entry.get("origin")
    by_harness = (
        entry.get("isMeta") is True
        or (isinstance(origin, dict) and origin.get("kind", "human") != "human")
        or text.lstrip().startswith(_HARNESS_PREFIXES)
    )
    return BlockKind.DEVELOPER if by_harness else BlockKind.USER


def read_claude_usage(message: JsonDict) -> Usage | None:
    """Return the usage that the provider has reported so far."""
    usage = get_field(message, "usage", dict, "message.")
    if usage is None:
        return None
    found = read_usage(
        usage,
        "message.usage.",
        input="input_tokens",
        cache_read="cache_read_input_tokens",
        cache_write="cache_creation_input_tokens",
        output="output_tokens",
    )
    match usage.get("cache_creation"):
        case {"ephemeral_1h_input_tokens": int(written)} if written > 0:
            return found.model_copy(update={"cache_write_1h": written})
    return found


@dataclass(slots=True)
class ProviderMessage:
    """A provider message, which spans several lines; the last ones have its usage."""

    id: str
    first_entry_id: str
    time: InitVar[str | None]
    fields: JsonDict = field(init=False)
    """The fields of its call, as in ReportedCall."""

    def __post_init__(self, time: str | None) -> None:
        self.fields = {"call_id": self.id, "model": None, "usage": None, "stop_reason": None}
        self.fields["source_time"] = time

    def update(self, message: JsonDict) -> None:
        """Add the content of one more line of the message."""
        for name in ("model", "stop_reason"):
            self.fields[name] = get_field(message, name, str, "message.") or self.fields[name]
        if usage := read_claude_usage(message):
            # Output is counted while it streams, so the largest count is the final one.
            if usage.output is None or usage.output < self.output:
                usage = usage.model_copy(update={"output": self.output})
            self.fields["usage"] = usage

    @property
    def output(self) -> int:
        return (self.fields["usage"] and self.fields["usage"].output) or 0

    def report_call(self) -> ReportedCall:
        """Return the call that it answered. Its key changes only as the message grows."""
        return ReportedCall(f"call:{self.id}:{self.output}", self.fields, self.first_entry_id)


def read_message_items(message: JsonDict) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return require_field(message, "content", list, "message.")


def read_message_text(entry: JsonDict) -> str:
    match entry.get("message"):
        case {"content": str(text)}:
            return text
        case {"content": list(items)}:
            return "\n".join(_find_texts(items, type="text"))
        case _:
            return ""


def _find_texts(items: list[Any], **fields: str) -> list[str]:
    """Return the texts of the items that have these fields."""
    return [
        item["text"]
        for item in items
        if isinstance(item, dict)
        and isinstance(item.get("text"), str)
        and fields.items() <= item.items()
    ]


class PromptQueue:
    """The queued prompts, according to `queue-operation` entries."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.told_otherwise = False
        """Whether this version writes attachments, which also hold these prompts."""

    def read_operation(self, entry: JsonDict) -> str:
        """Return the prompt that this operation sent to the model, if no other entry has it.

        `dequeue` starts a turn with a prompt, which follows as a user entry, and `popAll` returns
        the prompts to the user. `remove` adds a prompt to the current turn: newer versions also
        write an attachment, older ones only this.
        """
        operation = require_field(entry, "operation", str)
        content = get_field(entry, "content", str) or ""
        if operation == "enqueue":
            self.waiting.append(content)
        elif operation == "popAll":
            self.waiting.clear()
        elif operation in ("dequeue", "remove") and self.waiting:
            prompt = self.waiting.pop(0)
            if operation == "remove" and not self.told_otherwise:
                return prompt
        return ""


_AGENT_SOURCES = ("repl_main_thread", "sdk", "agent:")
"""Prefixes of the sources of requests that continue the conversation; others are side requests."""


@dataclass(slots=True)
class RequestAudit:
    """The request shapes by hash, and the current one."""

    shapes: dict[str, JsonDict] = field(default_factory=dict)
    pending_request: tuple[str, JsonDict] | None = None
    current: tuple[str, Any] | None = None

    def read_shape(self, entry: JsonDict) -> RequestParameters | None:
        """Read the system prompt and the tools that requests with one hash share."""
        name = require_field(entry, "shapeHash", str)
        self.shapes[name] = require_field(entry, "shape", dict)
        if self.pending_request and self.pending_request[1]["shapeHash"] == name:
            key, request = self.pending_request
            return self.read_request(request, key)
        return None

    def read_request(self, entry: JsonDict, key: str) -> RequestParameters | None:
        """Return what a request holds, if it differs from the request before."""
        source = get_field(entry, "querySource", str)
        if source is not None and not source.startswith(_AGENT_SOURCES):
            return None
        name, settings = require_field(entry, "shapeHash", str), get_field(entry, "params", dict)
        if name not in self.shapes:
            self.pending_request = (key, entry)
            return None
        self.pending_request = None
        if self.current == (name, settings):
            return None
        self.current = (name, settings)
        shape = self.shapes[name]
        return RequestParameters(
            key,
            _system_text(shape.get("system")),
            get_field(shape, "tools", list, "shape."),
            settings,
        )


def _system_text(system: Any) -> str | None:
    match system:
        case str():
            return system
        case list():
            return "\n\n".join(_find_texts(system)) or None
        case _:
            return None
