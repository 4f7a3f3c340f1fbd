"""A conversation that is to be summed up, and what a model may say of it."""

from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.item import Item
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.gate import check_draft
from cutbank.domain.summaries.summarizer import Draft, Material

GOAL = "Make the parser accept comments. Never touch the migrations folder."
_BLOCKS: tuple[AnyBlock, ...] = (
    Block.user(GOAL),
    Block.assistant("I read the parser first.", message_id="m1"),
    ToolCall(tool_call_id="c1", name="read", arguments='{"path": "parser.py"}', message_id="m1"),
    ToolResult(tool_call_id="c1", content="def parse(text):\n    raise SyntaxError\n" * 200),
    Block.assistant("It has no rule for comments; I add one to the grammar."),
)
MATERIAL = Material(
    removed_items=tuple(
        Item(position, block, turn=1, tokens=max(len(block.text) // 4, 8))
        for position, block in enumerate(_BLOCKS, 2)
    ),
    covers=Ranges.span(2, 1 + len(_BLOCKS)),
    budget=1_000,
)
SUMMARY = (
    "## Goal\n- Comments in the parser (#2)\n\n"
    "## Progress\n- The parser was read: it has no rule for comments (#5)\n\n"
    "## Next Steps\n- Add that rule to the grammar (#6)"
)


def judge(draft: Draft, material: Material = MATERIAL) -> None:
    """As the store does before a draft may stand for anything."""
    check_draft(draft, material, user_texts=[GOAL])
