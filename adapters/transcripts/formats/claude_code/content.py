"""Converts the content items and attachments of Claude Code to blocks.

Newer transcripts hold an attachment's text, as the model saw it, as `rendered`; for older ones, the
text of each known type is rebuilt here. The attachment itself stays in the kept source.
"""

from collections.abc import Callable
from string import Formatter
from typing import Any, Literal

from .....domain.blocks import (
    AnyBlock,
    Block,
    BlockKind,
    Media,
    Native,
    NativePart,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from .....projections.rendering import sendable
from ..content import require_base64
from ..fields import (
    JsonDict,
    MalformedError,
    UnknownItemError,
    get_field,
    require_field,
    require_name,
    require_type,
)
from ..json_lines import SourceLine
from .entries import classify_user_text

CLAUDE_CODE_PROVIDER = "anthropic"

_MediaKind = Literal["image", "document"]


def read_user_item(entry: JsonDict, item: Any, line: SourceLine) -> AnyBlock:
    match require_type(item):
        case "text":
            text = require_field(item, "text", str)
            return Block(kind=classify_user_text(entry, text), text=text)
        case "image" | "document" as what:
            return _read_media_block(item, what, line)
        case "tool_result":
            return ToolResult(
                tool_call_id=require_name(item, "tool_use_id"),
                content=_read_result_content(item, line),
                is_error=get_field(item, "is_error", bool) or False,
            )
        case unknown:
            raise UnknownItemError(unknown)


def read_assistant_item(entry: JsonDict, item: Any, line: SourceLine) -> AnyBlock:
    match require_type(item):
        case "text" if entry.get("isApiErrorMessage") is True:
            # Claude Code's own text after a provider error; no model saw it.
            return Block.note(require_field(item, "text", str), name="api_error")
        case "text":
            native = _make_native(item, line) if item.get("citations") else None
            return Block.assistant(require_field(item, "text", str), native=native)
        case "thinking":
            thought = require_field(item, "thinking", str)
            return Block.thinking(thought, native=_make_native(item, line))
        case "redacted_thinking":
            return Block.thinking("", native=_make_native(item, line))
        case "tool_use":
            # Keep the caller only if it was a program of the model's.
            direct = item.get("caller") in (None, {"type": "direct"})
            return ToolCall(
                tool_call_id=require_name(item, "id"),
                name=require_field(item, "name", str),
                arguments=line.to_json(require_field(item, "input", dict)),
                native=None if direct else _make_native(item, line),
            )
        case kind if kind.endswith(("_tool_use", "_tool_result")):
            # The provider ran this tool, and gets the call and its result back unchanged.
            return Block.assistant("", name=kind, native=_make_native(item, line))
        case unknown:
            raise UnknownItemError(unknown)


def _make_native(item: JsonDict, line: SourceLine) -> Native:
    return Native(provider=CLAUDE_CODE_PROVIDER, item=line.to_json(item))


def _read_result_content(item: JsonDict, line: SourceLine) -> str | tuple[ResultPart, ...]:
    content = item.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return tuple(_read_part(part, line) for part in require_field(item, "content", list))


def _read_part(part: Any, line: SourceLine) -> ResultPart:
    match require_type(part):
        case "text":
            return Text(text=require_field(part, "text", str))
        case "image" | "document" as what if media := _read_media(part, what):
            return media
        case _:
            return NativePart(native=_make_native(part, line))


def _read_media_block(item: JsonDict, what: _MediaKind, line: SourceLine) -> Block:
    media = _read_media(item, what)
    native = None if media else _make_native(item, line)
    return Block(kind=BlockKind(what), media=media, native=native, name=_read_title(item))


def _read_media(item: JsonDict, what: _MediaKind) -> Media | None:
    """Return the media; None for a file uploaded to the provider, whose bytes only it has."""
    source = require_field(item, "source", dict)
    match require_field(source, "type", str):
        case "base64":
            mime = require_field(source, "media_type", str)
            data = require_base64(require_field(source, "data", str), "source.data: ")
            content: JsonDict = {"mime": mime, "data": data}
        case "text":
            content = {"mime": "text/plain", "data": require_field(source, "data", str).encode()}
        case "url":
            mime = "application/pdf" if what == "document" else "image/*"
            content = {"mime": mime, "url": require_field(source, "url", str)}
        case _:
            return None
    return Media(type=what, name=_read_title(item), **content)


def _read_title(item: JsonDict) -> str | None:
    return get_field(item, "title", str)


IndexedBlocks = dict[int, AnyBlock]


def make_media_item(media: Media) -> JsonDict:
    """Return the item of an image or a document."""
    source = {"type": "url", "url": media.url} if media.url else _make_data_source(media)
    return {"type": media.type, "source": source}


def _make_data_source(media: Media) -> JsonDict:
    return {"type": "base64", "media_type": media.mime, "data": sendable.encode_base64(media)}


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


def _render_simply(template: str) -> Callable[[JsonDict], str]:
    fields = [name for _, name, _, _ in Formatter().parse(template) if name]
    return lambda a: template.format(**{name: _text_field(a, name) for name in fields})


_TEMPLATES: dict[str, Callable[[JsonDict], str]] = {
    "agent_listing_delta": _delta_template("Agents", "addedLines", "removedTypes"),
    "deferred_tools_delta": _delta_template("Deferred tools", "addedLines", "removedNames"),
    "mcp_instructions_delta": _delta_template("MCP instructions", "addedBlocks", "removedNames"),
    "file": _render_file,
    "nested_memory": _render_file,
    "relevant_memories": _render_memories,
    "hook_additional_context": _hook_template("additional context"),
    "hook_success": _hook_template("success"),
    "invoked_skills": _render_skills,
    "task_reminder": _render_tasks,
    "todo_reminder": _render_tasks,
} | {
    kind: _render_simply(template)
    for kind, template in {
        "compact_file_reference": "{filename} was read before the conversation was compacted.",
        "critical_system_reminder": "{content}",
        "date_change": "The date has changed: it is now {newDate}.",
        "directory": "{path} holds:\n{content}",
        "edited_text_file": "{filename} was changed:\n{snippet}",
        "hook_stopped_continuation": "{message}",
        "opened_file_in_ide": "The user opened {filename}.",
        "plan_file_reference": "The plan so far:\n{planContent}",
        "selected_lines_in_ide": "The user selected in {filename}:\n{content}",
        "skill_listing": "{content}",
        "total_tokens_reminder": "{text}",
    }.items()
}
