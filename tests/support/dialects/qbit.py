"""What qbit puts into a conversation for a tool's answer."""

from typing import Any

from cutbank.domain.trims import count_byte_tokens, detect_output_kind, find_ends

MAX_BYTES, FUSE_ROOM = 100_000, 50
"""The most bytes of an answer, and what the mark of a longer one takes of them."""


def aggregated(text: str, most_tokens: int) -> dict[str, Any]:
    original, content, removed = text, text, 0
    if ends := find_ends(text, most_tokens):
        tail_at = len(text) - ends.tail
        removed = count_lines(text[ends.head : tail_at])
        mark = f"\n\n[... {removed} lines truncated ...]\n\n"
        content = text[: ends.head].rstrip() + mark + text[tail_at:].lstrip()
    is_truncated = ends is not None
    if len(content.encode()) > MAX_BYTES:
        shown = content.encode()[: MAX_BYTES - FUSE_ROOM].decode(errors="ignore")
        original, removed = content, count_lines(content[len(shown) :])
        content, is_truncated = f"{shown}\n[... content truncated by byte fuse ...]", True
    return {
        "truncated": is_truncated,
        "original_bytes": len(original.encode()),
        "result_bytes": len(content.encode()),
        "lines_removed": removed,
        "tokens_saved": max(0, count_byte_tokens(original) - count_byte_tokens(content)),
        "type": detect_output_kind(text).value,
        "content": content,
    }


def count_lines(text: str) -> int:
    return text.count("\n") + bool(text and not text.endswith("\n"))
