"""Windows in few words: one item a word, with what a policy's rule looks at."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cutbank import Block, Plan, Policy, ToolCall, ToolResult, Trigger, Window, WindowItem
from cutbank.domain.blocks import AnyBlock


def make_items(
    words: str, tokens: int = 10, blocks: Mapping[str, AnyBlock] | None = None
) -> tuple[WindowItem, ...]:
    """Return an item for each word, the first at position 1.

    `u` user (begins a turn), `a` assistant, `t` thinking, `d` developer, `c` call, `l` call that
    only looks, `r` result of the newest call without one. `/m` puts it into message m and `=5`
    makes it that large; `!` pins it, `~` breaks it off. Texts have four characters a token.
    """
    items: list[WindowItem] = []
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
            WindowItem(
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
