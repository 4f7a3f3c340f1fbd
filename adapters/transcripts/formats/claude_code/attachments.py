"""What Claude Code tells the model unasked: its attachments, as text.

Newer transcripts hold, as `rendered`, the very words that the model saw; of older ones each known
type is put into words here. The attachment itself stays in the block's origin.
"""

from collections.abc import Callable
from typing import Any

from .....domain.blocks import Block, ToolResult
from ..json_lines import Line
from ..reading.fields import Item, MalformedError, take, take_optional
from .content import UnheardError, user_item

_WITHOUT_TEXT = frozenset(
    (
        # For the person.
        *("already_read_file", "command_permissions", "credential_org", "dynamic_skill"),
        *("hook_cancelled", "hook_error_during_execution", "hook_non_blocking_error"),
        *("hook_permission_decision", "hook_system_message", "structured_output"),
        # The program makes its words anew each time that it sends them.
        *("agent_mention", "auto_mode", "auto_mode_exit", "output_style", "plan_mode"),
        *("plan_mode_exit", "plan_mode_reentry"),
    )
)


def read_attachment(entry: Item, line: Line) -> list[Block]:
    """The blocks of an attachment entry; none where it is for the person, or says nothing, or
    does not hold the text that the model saw."""
    attachment = take(entry, "attachment", dict)
    kind = take(attachment, "type", str)
    if kind == "queued_command":
        return _queued(entry, attachment, line)
    if "rendered" in entry:
        text = "\n".join(_rendered(take(entry, "rendered", list)))
    elif kind in _WITHOUT_TEXT:
        return []
    elif kind == "file" and (image := _image(attachment)):
        return [user_item(entry, image, line)]  # type: ignore[list-item]
    elif words := _IN_WORDS.get(kind):
        text = words(attachment)
    else:
        raise UnheardError(kind)
    if not text.strip():
        return []
    about = attachment.get("filename") or attachment.get("path")
    return [Block.developer(text, name=about if isinstance(about, str) else kind)]


def _queued(entry: Item, attachment: Item, line: Line) -> list[Any]:
    # What a person typed while the agent worked is that person's word, however it was wrapped.
    prompt = attachment.get("prompt")
    items = prompt if isinstance(prompt, list) else [{"type": "text", "text": prompt}]
    typed = attachment.get("commandMode", "prompt") == "prompt"
    source = {
        "isMeta": not typed or entry.get("isMeta"),
        "origin": attachment.get("origin"),
    }
    blocks = [user_item(source, item, line) for item in items]
    if any(isinstance(block, ToolResult) for block in blocks):
        raise MalformedError("attachment.prompt: expected text and images")
    return blocks


def _rendered(pieces: list[Any]) -> list[str]:
    texts: list[str] = []
    for piece in pieces:
        match piece:
            case {"content": str(text)} | {"text": str(text)}:
                texts.append(text)
            case {"content": list(inner)}:
                texts += _rendered(inner)
            case {"type": str()}:
                pass  # an image: the text says that there is one
            case _:
                raise MalformedError("rendered: expected pieces of text")
    return texts


def _image(attachment: Item) -> Item | None:
    match attachment.get("content"):
        case {"type": "image", "file": {"base64": data, "type": mime}}:
            return {
                "type": "image",
                "source": {"type": "base64", "media_type": mime, "data": data},
                "title": attachment.get("filename"),
            }
        case _:
            return None


def _texts(owner: Item, field: str) -> list[str]:
    value = owner.get(field)
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    texts = take(owner, field, list)
    if not all(isinstance(text, str) for text in texts):
        raise MalformedError(f"{field}: expected a list of text")
    return texts


def _text(owner: Item, field: str) -> str:
    return "\n".join(_texts(owner, field))


def _hook(what: str) -> Callable[[Item], str]:
    def words(a: Item) -> str:
        text = _text(a, "content")
        return f"{take_optional(a, 'hookName', str) or 'A'} hook {what}: {text}" if text else ""

    return words


def _delta(what: str, added: str, removed: str) -> Callable[[Item], str]:
    def words(a: Item) -> str:
        more = [f"{what} added:", *_texts(a, added)] if a.get(added) else []
        less = [f"{what} removed: {', '.join(_texts(a, removed))}"] if a.get(removed) else []
        return "\n".join([*more, *less])

    return words


def _file(a: Item) -> str:
    content = a.get("content")
    inner = content.get("file", content) if isinstance(content, dict) else a
    text = _text(inner if isinstance(inner, dict) else {}, "content")
    return f"Contents of {a.get('filename') or a.get('path')}:\n\n{text}" if text else ""


def _skills(a: Item) -> str:
    skills = [skill for skill in take(a, "skills", list) if isinstance(skill, dict)]
    parts = [f"### {skill.get('name')}\n\n{_text(skill, 'content')}" for skill in skills]
    return "\n\n".join(["Skills invoked earlier in this session:", *parts]) if parts else ""


def _tasks(a: Item) -> str:
    tasks = [task for task in take(a, "content", list) if isinstance(task, dict)]
    rows = [
        f"#{task.get('id')} [{task.get('status')}] {task.get('subject', task.get('content'))}"
        for task in tasks
    ]
    return "\n".join(["The tasks as they stand:", *rows]) if rows else ""


def _memories(a: Item) -> str:
    memories = [memory for memory in take(a, "memories", list) if isinstance(memory, dict)]
    return "\n\n".join(_file(memory) for memory in memories)


_IN_WORDS: dict[str, Callable[[Item], str]] = {
    "agent_listing_delta": _delta("Agents", "addedLines", "removedTypes"),
    "compact_file_reference": lambda a: (
        f"{take(a, 'filename', str)} was read before the conversation was compacted."
    ),
    "critical_system_reminder": lambda a: _text(a, "content"),
    "date_change": lambda a: f"The date has changed: it is now {take(a, 'newDate', str)}.",
    "deferred_tools_delta": _delta("Deferred tools", "addedLines", "removedNames"),
    "directory": lambda a: f"{take(a, 'path', str)} holds:\n{_text(a, 'content')}",
    "edited_text_file": lambda a: (
        f"{take(a, 'filename', str)} was changed:\n{take(a, 'snippet', str)}"
    ),
    "file": _file,
    "hook_additional_context": _hook("additional context"),
    "hook_stopped_continuation": lambda a: _text(a, "message"),
    "hook_success": _hook("success"),
    "invoked_skills": _skills,
    "mcp_instructions_delta": _delta("MCP instructions", "addedBlocks", "removedNames"),
    "nested_memory": _file,
    "opened_file_in_ide": lambda a: f"The user opened {take(a, 'filename', str)}.",
    "plan_file_reference": lambda a: f"The plan so far:\n{_text(a, 'planContent')}",
    "relevant_memories": _memories,
    "selected_lines_in_ide": lambda a: (
        f"The user selected in {take(a, 'filename', str)}:\n{_text(a, 'content')}"
    ),
    "skill_listing": lambda a: _text(a, "content"),
    "task_reminder": _tasks,
    "todo_reminder": _tasks,
    "total_tokens_reminder": lambda a: _text(a, "text"),
}
