"""The neutral blocks of the vectors as an import of kdcube's timeline would keep them."""

import json
from collections.abc import Sequence
from typing import Any

from made_events import make_boundary, make_summary
from neutral_blocks import Neutral, block_of, turn_of

from cutbank import Block, BlockKind, Ranges, Trigger, Window, WindowItem
from cutbank.domain.blocks import AnyBlock, Origin

TIME = "2026-02-09T00:00:00Z"
TYPES = {
    "turn_header": ("turn.header", "system"),
    "user": ("user.prompt", "user"),
    "assistant": ("assistant.completion", "assistant"),
    "thinking": ("react.thinking", ""),
    "tool_call": ("react.tool.call", ""),
    "tool_result": ("react.tool.result", ""),
    "summary": ("conv.range.summary", "system"),
    "artifact": ("react.artifact", ""),
    "note": ("react.note", ""),
    "developer": ("system.message", "system"),
}


def timeline_block(neutral: Neutral) -> AnyBlock:
    """One block, with what it is on the timeline beside it."""
    meta = neutral["meta"]
    kind, author = TYPES[neutral["kind"]]
    entry = {
        "type": kind,
        "author": meta.get("author", author),
        "turn_id": neutral["turn_id"],
        "ts": TIME,
        "path": meta.get("path"),
        "mime": meta.get("mime"),
        "call_id": neutral["tool_call_id"],
        "meta": {"hidden": neutral["hidden"], "replacement_text": meta.get("replacement_text")},
    }
    origin = Origin(format="kdcube", entry=json.dumps(entry))
    if neutral["kind"] == "summary":
        return Block(kind=BlockKind.NOTE, text=neutral["text"], origin=origin)
    return block_of(neutral).model_copy(update={"origin": origin})


def timeline_item(position: int, neutral: Neutral) -> WindowItem:
    return WindowItem(
        position=position, block=timeline_block(neutral), turn=turn_of(neutral), tokens=0
    )


def timeline_window(blocks: Sequence[Neutral], config: dict[str, Any], trigger: Trigger) -> Window:
    """The blocks behind the last summary in view, the others still in memory."""
    items = tuple(timeline_item(at, neutral) for at, neutral in enumerate(blocks, 1))
    last = max(
        (at for at, neutral in enumerate(blocks, 1) if neutral["kind"] == "summary"), default=0
    )
    return Window(
        items=items[last:],
        after=len(items),
        limit=config["max_tokens"],
        trigger=trigger,
        system_prompt="s" * config["system_chars"],
        evicted=items[: last - 1] if last else (),
        boundary=make_boundary(last, Ranges()) if last else None,
        summary=make_summary(blocks[last - 1]["text"], Ranges.span(1, last)) if last else None,
    )
