"""A session that cutbank made itself, and what is said in one that was imported."""

from cutbank import Block, BlockKind, StoredSession, Text, ToolCall, ToolResult, Usage
from cutbank.domain.blocks import Media

PNG = Media(type="image", mime="image/png", data=b"\x89PNG-a-small-picture")


def talk(session: StoredSession) -> None:
    """A prompt with an image, two calls at once (one fails), an answer, and an open call."""
    session.append(
        Block.user("which boats leave?", message_id="p1"),
        Block(kind=BlockKind.IMAGE, media=PNG, message_id="p1"),
    )
    view = session.view()
    session.append(
        Block.thinking("two lists could say so", message_id="m1"),
        Block.assistant("I look", message_id="m1"),
        ToolCall(tool_call_id="c1", name="read", arguments={"path": "a"}, message_id="m1"),
        ToolCall(tool_call_id="c2", name="read", arguments={"path": "b"}, message_id="m1"),
    )
    usage = Usage(input=20, cache_read=100, output=12, reasoning=4)
    session.record_call(view, call_id="m1", model="acme-1", usage=usage, stop_reason="tool_use")
    session.append(
        ToolResult(tool_call_id="c2", content="no such file", is_error=True),
        ToolResult(tool_call_id="c1", content=(Text(text="Petrel"), PNG)),
    )
    session.append(Block.assistant("the Petrel", message_id="m2"))
    session.append(Block.user("and later?"))
    session.append(ToolCall(tool_call_id="c3", name="wait", arguments={}, message_id="m3"))


def said(session: StoredSession) -> list[tuple[str, str, str | None]]:
    """Return of each block in view its kind, its text, and the call that it is or answers."""
    return [
        (entry.block.kind.value, entry.text, getattr(entry.block, "tool_call_id", None))
        for entry in session.view().entries
    ]
