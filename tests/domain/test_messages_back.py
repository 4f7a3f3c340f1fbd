"""Messages from the newest on are the messages, and no further back is looked than is asked."""

from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.item import Item
from cutbank.domain.messages import group_messages, iter_messages_back

BLOCKS: tuple[AnyBlock, ...] = (
    Block.user("words"),
    Block.assistant("words"),
    Block.thinking("words"),
    Block.developer("words"),
    Block.note("words"),
    ToolCall(tool_call_id="c", name="tool"),
    ToolResult(tool_call_id="c"),
)
ITEMS = st.lists(
    st.tuples(st.sampled_from(BLOCKS), st.sampled_from([None, "m", "n"])), max_size=20
).map(
    lambda pieces: [
        Item(at, block.model_copy(update={"message_id": name}), turn=1, tokens=1)
        for at, (block, name) in enumerate(pieces, 1)
    ]
)


@given(ITEMS)
def test_they_are_the_messages_the_newest_first(items: list[Item]) -> None:
    assert tuple(iter_messages_back(items)) == group_messages(items)[::-1]


def test_what_stands_before_is_not_looked_at() -> None:
    class Newest(list[Item]):
        """Items of which only the newest may be looked at."""

        def __getitem__(self, index):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN204
            assert index >= len(self) - 3, index
            return super().__getitem__(index)

        __iter__ = None  # type: ignore[assignment]

    said = [Block.user("words"), Block.assistant("words", message_id="m")]
    items = Newest([Item(at, said[at % 2], turn=1, tokens=1) for at in range(1_000)])

    assert next(iter_messages_back(items)).start == 999
