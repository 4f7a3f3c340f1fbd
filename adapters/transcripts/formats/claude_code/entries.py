"""Reads kinds, usage and prompts of Claude Code entries; holds back results before their call."""

from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field
from typing import Any

from .....domain.blocks import BlockKind
from .....domain.session_events import Usage
from ..fields import JsonDict, find_text, get_field, read_usage, require_field
from ..json_lines import SourceLine
from ..steps import ReportedCall

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

SKIPPED_ENTRY_TYPES = frozenset(
    {
        *("agent-color", "agent-name", "agent-setting", "agent_metadata", "ai-title"),
        *("api-request", "api-request-blob", "api-request-resumed", "api-request-shape"),
        *("atis-latch", "bridge-session", "continued-in", "cost-state", "custom-title"),
        *("file-history-delta", "file-history-snapshot", "fork-context-ref", "frame-link"),
        *("history-suppression", "last-prompt", "mode", "permission-mode", "pr-link", "progress"),
        *("queue-operation", "relocated", "summary", "system/agents_killed", "system/api_error"),
        *("system/away_summary", "system/bridge_status", "system/file_snapshot"),
        *("system/informational", "system/memory_saved", "system/model_fallback"),
        *("system/permission_retry", "system/scheduled_task_fire", "system/stop_hook_summary"),
        *("system/thinking", "system/turn_duration", "tag", "tools-used"),
    }
)
"""Types of entries without content of the session; others may name them as their parents."""

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
    return None if usage is None else _read_counts(usage, "message.usage.")


def read_claude_calls(usage: JsonDict) -> list[tuple[str | None, Usage]]:
    """Return the model, if it is another one, and the usage of each call behind a message.

    The provider's own tools make it call again, an advisor's with another model. The message's
    usage is the sum of all calls but those of other models. Empty if it was one call.
    """
    calls = usage.get("iterations")
    if not isinstance(calls, list) or len(calls) < 2 or not all(isinstance(c, dict) for c in calls):
        return []
    return [
        (find_text(call, "model"), _read_counts(call, "message.usage.iterations."))
        for call in calls
    ]


def make_call_id(message_id: str, number: int) -> str:
    """Return the id of the nth call behind a message; the first one's is the message's."""
    return message_id if number == 1 else f"{message_id}/{number}"


def _read_counts(usage: JsonDict, within: str) -> Usage:
    found = read_usage(
        usage,
        within,
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
    calls: list[tuple[str | None, Usage]] = field(default_factory=list)
    """What `read_claude_calls` found."""

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
            self.calls = read_claude_calls(message["usage"])

    @property
    def output(self) -> int:
        return (self.fields["usage"] and self.fields["usage"].output) or 0

    def report_calls(self) -> Iterator[ReportedCall]:
        """Yield the calls that it answered. Their keys change only as the message grows."""
        key = f"call:{self.id}:{self.output}"
        for number, (model, usage) in enumerate(self.calls or [(None, self.fields["usage"])], 1):
            call = {
                "call_id": make_call_id(self.id, number),
                "model": model or self.fields["model"],
                "usage": usage,
            }
            yield ReportedCall(make_call_id(key, number), self.fields | call, self.first_entry_id)


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
            texts = (find_text(item, "text") for item in items if find_text(item, "type") == "text")
            return "\n".join(text or "" for text in texts)
        case _:
            return ""


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


@dataclass(slots=True)
class WaitingLines:
    """The waiting lines, in groups: a result without its call, and its descendants."""

    known_calls: set[str] = field(default_factory=set)
    groups: dict[int, list[SourceLine]] = field(default_factory=dict)
    """Groups by the number of their first line."""
    group_of: dict[str, int] = field(default_factory=dict)
    """The group of each waiting entry, by id."""
    wanted_calls: dict[str, set[int]] = field(default_factory=dict)

    def take(self, line: SourceLine) -> Iterator[SourceLine]:
        """Yield the lines that can be read now, in order; none if this one has to wait."""
        item = line.value if isinstance(line.value, dict) else {}
        answered = list(_call_ids(item, "user", "tool_result", "tool_use_id"))
        above = item.get("parentUuid")
        group = self.group_of.get(above) if isinstance(above, str) else None
        if group is not None and not answered and item.get("type") in ("user", "assistant"):
            yield from self._release(group)
        elif group is not None or (answered and self.known_calls.isdisjoint(answered)):
            self._hold(line, item, answered, line.number if group is None else group)
            return
        yield line
        for call in _call_ids(item, "assistant", "tool_use", "id"):
            self.known_calls.add(call)
            for waiting in sorted(self.wanted_calls.pop(call, ())):
                for held in self._release(waiting):
                    yield from self.take(held)

    def release(self) -> Iterator[SourceLine]:
        """Yield all lines that still wait."""
        for group in list(self.groups):
            yield from self._release(group)

    def _hold(self, line: SourceLine, item: JsonDict, answered: list[str], group: int) -> None:
        self.groups.setdefault(group, []).append(line)
        if isinstance(id := item.get("uuid"), str):
            self.group_of[id] = group
        for call in answered:
            self.wanted_calls.setdefault(call, set()).add(group)

    def _release(self, group: int) -> list[SourceLine]:
        lines = self.groups.pop(group, [])
        for line in lines:
            if isinstance(id := line.value.get("uuid"), str):
                self.group_of.pop(id, None)
        return lines


def _call_ids(item: JsonDict, kind: str, part: str, field: str) -> Iterator[str]:
    """Yield the ids of tool calls that an entry of this kind makes or answers."""
    message = item.get("message") if item.get("type") == kind else None
    content = message.get("content") if isinstance(message, dict) else None
    for one in content if isinstance(content, list) else ():
        if isinstance(one, dict) and one.get("type") == part and isinstance(one.get(field), str):
            yield one[field]
