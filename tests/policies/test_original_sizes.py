"""The size of a message as each original program has it."""

from collections.abc import Callable, Mapping, Sequence

from cutbank import Block, BlockKind, Text, ToolCall, ToolResult, WindowItem
from cutbank.domain.blocks import AnyBlock, Media
from cutbank.domain.item import group_messages
from cutbank.domain.policies.reference.claude_sdk import count_goat_tokens
from cutbank.domain.policies.reference.kdcube import iter_sizes
from cutbank.domain.policies.reference.klaude_code import count_klaude_tokens
from cutbank.domain.policies.reference.pi_mono import PiAsShipped
from cutbank.domain.policies.reference.qbit import QbitAsShipped
from cutbank.domain.policies.reference.tunacode import TunacodeAsShipped

COUNTS: Mapping[str, Callable[[Sequence[WindowItem]], int | None]] = {
    "kdcube": lambda items: sum(iter_sizes(items)),
    "tunacode": TunacodeAsShipped().count_tokens,
    "klaude": count_klaude_tokens,
    "pi": PiAsShipped().count_message_tokens,
    "goat": count_goat_tokens,
    "qbit": lambda items: QbitAsShipped().count_tokens(group_messages(items)[0]),
}
PICTURE = Media(type="image", mime="image/png", data=b"x" * 100_000)
ADDRESS = Media(type="image", mime="image/png", url="https://example.org/a.png")
TWO = [Block(kind=BlockKind.ASSISTANT, text="12345", message_id="m")] * 2
MESSAGES: list[tuple[Sequence[AnyBlock], dict[str, int]]] = [
    # Nine code points, eleven UTF-16 units, seventeen bytes.
    (
        [Block.user("abcdefé🙂🙂")],
        {"kdcube": 2, "tunacode": 2, "klaude": 3, "pi": 3, "goat": 8, "qbit": 4},
    ),
    # The smallest message, and the empty one.
    ([Block.user("a")], {"kdcube": 1}),
    ([Block.user("  \n")], {"kdcube": 0}),
    ([Block.user("")], {"klaude": 1, "goat": 4, "pi": 0}),
    # A call of `bash` with eight characters of arguments, and an id of two.
    (
        [ToolCall(tool_call_id="c1", name="bash", arguments='{"a": 1}')],
        {"tunacode": 3, "klaude": 3, "pi": 3, "goat": 4, "qbit": 3},
    ),
    # Images: never their bytes.
    (
        [ToolResult(tool_call_id="c1", content=(Text(text="12345"), PICTURE))],
        {"kdcube": 1, "tunacode": 3, "klaude": 302, "pi": 1_202, "goat": 5},
    ),
    ([Block(kind=BlockKind.IMAGE, media=PICTURE)], {"pi": 0, "qbit": 2, "tunacode": 1}),
    # An address of 25 characters, and arguments as Python prints them: 32 characters, not 25.
    ([Block(kind=BlockKind.IMAGE, media=ADDRESS)], {"tunacode": 6}),
    (
        [ToolResult(tool_call_id="c", content=(Text(text="ab"), PICTURE, ADDRESS))],
        {"tunacode": (2 + 1 + 7 + 1 + 25) // 4},
    ),
    (
        [ToolCall(tool_call_id="c", name="read", arguments='{"a":1,"b":2,"c":3,"d":4}')],
        {"tunacode": (1 + 4 + 32) // 4},
    ),
    ([Block.thinking("12345")], {"klaude": 2, "goat": 4}),
    ([Block.thinking("a" * 100)], {"qbit": 3}),
    # A result as Rust shows it: `Text(Text { text: "..." })`, with what is escaped.
    ([ToolResult(tool_call_id="c", content='12345\n"\\')], {"qbit": 9}),
    # The pieces of a message are divided together: rounding each adds up to another number.
    (TWO, {"tunacode": 2, "klaude": 3, "pi": 3, "goat": 6, "qbit": 3}),
    # Half a character counts, too.
    ([Block.user("\ud800" * 8)], dict(zip(COUNTS, (2, 2, 2, 2, 10, 6), strict=True))),
]


def test_a_message_is_as_large_as_the_original_program_has_it() -> None:
    for blocks, expected in MESSAGES:
        items = [WindowItem(at, block, turn=1, tokens=0) for at, block in enumerate(blocks, 1)]
        assert {name: COUNTS[name](items) for name in expected} == expected, blocks
