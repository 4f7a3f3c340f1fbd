"""Windows in few words: one item a word, with what a policy's rule looks at."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.compaction_events import CompactBoundary, Summary, Trigger
from cutbank.domain.item import Item
from cutbank.domain.policies.policy import Policy
from cutbank.domain.ranges import Ranges
from cutbank.domain.window import Plan, Window

ENVELOPE: dict[str, Any] = {
    "originator_id": UUID(int=1),
    "originator_version": 1,
    "timestamp": datetime(2026, 1, 1, tzinfo=UTC),
    "subject": "s",
}


def make_items(
    words: str, tokens: int = 10, blocks: Mapping[str, AnyBlock] | None = None
) -> tuple[Item, ...]:
    """Return an item for each word, the first at position 1.

    `u` user (begins a turn), `a` assistant, `t` thinking, `d` developer, `c` call, `l` call that
    only looks, `r` result of the newest call without one. `/m` puts it into message m and `=5`
    makes it that large; `!` pins it, `~` breaks it off. Texts have four characters a token.
    """
    items: list[Item] = []
    turn = 1
    for at, word in enumerate(words.split(), 1):
        said, _, size = word.strip("!~").partition("=")
        kind, _, message = said.partition("/")
        turn += kind == "u" and at > 1
        call = None
        if kind == "r":
            call = max((i.position for i in items if i.is_open), default=None)
            items = [replace(i, is_open=i.is_open and i.position != call) for i in items]
        count = int(size or tokens)
        block = (blocks or {}).get(kind) or make_block(kind, call or at, count)
        items.append(
            Item(
                position=at,
                block=block.model_copy(update={"message_id": message or None}),
                turn=turn,
                tokens=count,
                call=call,
                is_open=kind in {"c", "l"},
                is_pinned="!" in word,
                is_unfinished="~" in word,
            )
        )
    return tuple(items)


def make_block(kind: str, call: int, tokens: int) -> AnyBlock:
    text = "w" * 4 * tokens
    match kind:
        case "c" | "l":
            name = "bash" if kind == "c" else "read_file"
            return ToolCall(tool_call_id=f"{call}", name=name, arguments={"x": text})
        case "r":
            return ToolResult(tool_call_id=f"{call}", content=text)
        case _:
            makers = {"u": Block.user, "a": Block.assistant, "t": Block.thinking}
            return makers.get(kind, Block.developer)(text)


def make_window(
    words: str,
    *,
    tokens: int = 10,
    blocks: Mapping[str, AnyBlock] | None = None,
    limit: int = 100,
    trigger: Trigger = Trigger.MANUAL,
    **more: Any,
) -> Window:
    items = make_items(words, tokens, blocks)
    return Window(items=items, after=len(items), limit=limit, trigger=trigger, **more)


def make_plan(policy: Policy, window: Window) -> Plan:
    plan = policy.plan(window)
    assert plan is not None
    return plan


def find_planned_cut(policy: Policy, window: Window) -> int | None:
    plan = policy.plan(window)
    return plan.cut if plan else None


def make_boundary(**more: Any) -> CompactBoundary:
    """A boundary as it is stored, of which a test gives what it is about."""
    fields = {
        "after": more.get("first_kept", 1),
        "first_kept": 1,
        "kept": Ranges(),
        "trigger": Trigger.MANUAL,
        "policy": "p",
        "pre_tokens": 1,
        "post_tokens": 1,
    }
    return CompactBoundary(**ENVELOPE | fields | more)


def make_summary(**more: Any) -> Summary:
    fields = {"boundary": 1, "text": "what happened", "summarizer": "s", "tokens": 1}
    return Summary(**ENVELOPE | fields | more)
