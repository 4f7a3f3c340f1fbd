"""What a window gives policies: items made late, prefix sums, messages from the newest on."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.item import Item
from cutbank.domain.messages import group_messages, iter_messages_back
from cutbank.domain.window import LazySequence, find_budget_index


def test_a_sequence_is_made_on_first_use_and_once() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("abc")
        return made[-1]

    some = LazySequence(make)
    assert not made

    assert (some[0], some[-1], some[1:]) == ("a", "c", ("b", "c"))
    assert (len(some), list(reversed(some)), "b" in some) == (3, ["c", "b", "a"], True)
    assert some == ("a", "b", "c")
    assert some not in (("a", "b"), 3)
    assert made == ["abc"]


SIZES = st.lists(st.integers(0, 9), max_size=30)


def walked(sizes: list[int], budget: int, *, inclusive: bool) -> int | None:
    """Item by item from the newest on, as the documents tell it."""
    held = 0
    for index in reversed(range(len(sizes))):
        held += sizes[index]
        if held > budget or (inclusive and held == budget):
            return index
    return None


@given(SIZES, st.integers(0, 200), st.booleans())
def test_bisection_finds_what_a_walk_finds(sizes: list[int], budget: int, inclusive: bool) -> None:
    running = tuple(accumulate(sizes, initial=0))

    assert find_budget_index(running, budget, inclusive=inclusive) == walked(
        sizes, budget, inclusive=inclusive
    )


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
