"""Converts Claude Code's attachments to the text that the model saw.

Newer transcripts hold this text as `rendered`; for older ones, the text of each known type is
rebuilt here. The attachment itself stays in the block's origin.
"""

from collections.abc import Callable
from typing import Any

from .....domain.blocks import Block, ToolResult
from ..fields import JsonDict, MalformedError, get_field, require_field
from ..json_lines import SourceLine
from .content import UnknownItemError, read_user_item

_WITHOUT_TEXT = frozenset(
    (
        # Only shown to the user.
        *("already_read_file", "command_permissions", "credential_org", "dynamic_skill"),
        *("hook_cancelled", "hook_error_during_execution", "hook_non_blocking_error"),
        *("hook_permission_decision", "hook_system_message", "structured_output"),
        # The program rebuilds this text for each request.
        *("agent_mention", "auto_mode", "auto_mode_exit", "output_style", "plan_mode"),
        *("plan_mode_exit", "plan_mode_reentry"),
    )
)


def read_attachment(entry: JsonDict, line: SourceLine) -> list[Block]:
    """Return the blocks of an attachment entry; none if it is only for the user, is empty, or lacks
    the text that the model saw.
    """
    attachment = require_field(entry, "attachment", dict)
    kind = require_field(attachment, "type", str)
    if kind == "queued_command":
        return _render_queued(entry, attachment, line)
    if "rendered" in entry:
        text = "\n".join(_drop_empty(require_field(entry, "rendered", list)))
    elif kind in _WITHOUT_TEXT:
        return []
    elif kind == "file" and (image := _read_image(attachment)):
        return [read_user_item(entry, image, line)]  # type: ignore[list-item]
    elif words := _TEMPLATES.get(kind):
        text = words(attachment)
    else:
        raise UnknownItemError(kind)
    if not text.strip():
        return []
    about = attachment.get("filename") or attachment.get("path")
    return [Block.developer(text, name=about if isinstance(about, str) else kind)]


def _render_queued(entry: JsonDict, attachment: JsonDict, line: SourceLine) -> list[Any]:
    # Text that the user typed while the agent worked is a user message, however it is wrapped.
    prompt = attachment.get("prompt")
    items = prompt if isinstance(prompt, list) else [{"type": "text", "text": prompt}]
    typed = attachment.get("commandMode", "prompt") == "prompt"
    source = {"isMeta": not typed or entry.get("isMeta"), "origin": attachment.get("origin")}
    blocks = [read_user_item(source, item, line) for item in items]
    if any(isinstance(block, ToolResult) for block in blocks):
        raise MalformedError("attachment.prompt: expected text and images")
    return blocks


def _drop_empty(pieces: list[Any]) -> list[str]:
    texts: list[str] = []
    for piece in pieces:
        match piece:
            case {"content": str(text)} | {"text": str(text)}:
                texts.append(text)
            case {"content": list(inner)}:
                texts += _drop_empty(inner)
            case {"type": str()}:
                pass  # the text mentions the image
            case _:
                raise MalformedError("rendered: expected pieces of text")
    return texts


def _read_image(attachment: JsonDict) -> JsonDict | None:
    match attachment.get("content"):
        case {"type": "image", "file": {"base64": data, "type": mime}}:
            return {
                "type": "image",
                "source": {"type": "base64", "media_type": mime, "data": data},
                "title": attachment.get("filename"),
            }
        case _:
            return None


def _text_list(owner: JsonDict, field: str) -> list[str]:
    value = owner.get(field)
    texts = [value] if isinstance(value, str) else get_field(owner, field, list) or []
    if not all(isinstance(text, str) for text in texts):
        raise MalformedError(f"{field}: expected a list of text")
    return texts


def _text_field(owner: JsonDict, field: str) -> str:
    return "\n".join(_text_list(owner, field))


def _list_objects(owner: JsonDict, field: str) -> list[JsonDict]:
    return [value for value in require_field(owner, field, list) if isinstance(value, dict)]


def _hook_template(what: str) -> Callable[[JsonDict], str]:
    def words(a: JsonDict) -> str:
        text = _text_field(a, "content")
        return f"{get_field(a, 'hookName', str) or 'A'} hook {what}: {text}" if text else ""

    return words


def _delta_template(what: str, added: str, removed: str) -> Callable[[JsonDict], str]:
    def words(a: JsonDict) -> str:
        more = [f"{what} added:", *_text_list(a, added)] if a.get(added) else []
        less = [f"{what} removed: {', '.join(_text_list(a, removed))}"] if a.get(removed) else []
        return "\n".join([*more, *less])

    return words


def _render_file(a: JsonDict) -> str:
    content = a.get("content")
    inner = content.get("file", content) if isinstance(content, dict) else a
    text = _text_field(inner if isinstance(inner, dict) else {}, "content")
    return f"Contents of {a.get('filename') or a.get('path')}:\n\n{text}" if text else ""


def _render_skills(a: JsonDict) -> str:
    skills = _list_objects(a, "skills")
    parts = [f"### {skill.get('name')}\n\n{_text_field(skill, 'content')}" for skill in skills]
    return "\n\n".join(["Skills invoked earlier in this session:", *parts]) if parts else ""


def _render_tasks(a: JsonDict) -> str:
    rows = [
        f"#{task.get('id')} [{task.get('status')}] {task.get('subject', task.get('content'))}"
        for task in _list_objects(a, "content")
    ]
    return "\n".join(["The tasks as they stand:", *rows]) if rows else ""


def _render_memories(a: JsonDict) -> str:
    return "\n\n".join(_render_file(memory) for memory in _list_objects(a, "memories"))


_TEMPLATES: dict[str, Callable[[JsonDict], str]] = {
    "agent_listing_delta": _delta_template("Agents", "addedLines", "removedTypes"),
    "compact_file_reference": lambda a: (
        f"{require_field(a, 'filename', str)} was read before the conversation was compacted."
    ),
    "critical_system_reminder": lambda a: _text_field(a, "content"),
    "date_change": lambda a: f"The date has changed: it is now {require_field(a, 'newDate', str)}.",
    "deferred_tools_delta": _delta_template("Deferred tools", "addedLines", "removedNames"),
    "directory": lambda a: f"{require_field(a, 'path', str)} holds:\n{_text_field(a, 'content')}",
    "edited_text_file": lambda a: (
        f"{require_field(a, 'filename', str)} was changed:\n{require_field(a, 'snippet', str)}"
    ),
    "file": _render_file,
    "hook_additional_context": _hook_template("additional context"),
    "hook_stopped_continuation": lambda a: _text_field(a, "message"),
    "hook_success": _hook_template("success"),
    "invoked_skills": _render_skills,
    "mcp_instructions_delta": _delta_template("MCP instructions", "addedBlocks", "removedNames"),
    "nested_memory": _render_file,
    "opened_file_in_ide": lambda a: f"The user opened {require_field(a, 'filename', str)}.",
    "plan_file_reference": lambda a: f"The plan so far:\n{_text_field(a, 'planContent')}",
    "relevant_memories": _render_memories,
    "selected_lines_in_ide": lambda a: (
        f"The user selected in {require_field(a, 'filename', str)}:\n{_text_field(a, 'content')}"
    ),
    "skill_listing": lambda a: _text_field(a, "content"),
    "task_reminder": _render_tasks,
    "todo_reminder": _render_tasks,
    "total_tokens_reminder": lambda a: _text_field(a, "text"),
}
