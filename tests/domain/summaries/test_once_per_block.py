"""What was found in a block is remembered with the block, and forgotten with it."""

from weakref import WeakSet

from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.blocks import Block
from cutbank.domain.summaries.extraction.block_cache import CachedPerBlock


def test_a_block_is_read_once_in_each_way() -> None:
    read: list[tuple[str, int]] = []

    @CachedPerBlock
    def beginning(block: Block, most: int) -> str:
        read.append((block.text, most))
        return block.text[:most]

    block, other = Block.user("hello"), Block.user("hello")

    assert [beginning(one, most) for one in (block, other) for most in (2, 3, 2)] == [
        *("he", "hel", "he"),
        *("he", "hel", "he"),
    ]
    assert read == [("hello", 2), ("hello", 3)] * 2


@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=3)), max_size=40))
def test_nothing_is_ever_told_of_a_block_that_was_found_in_another(
    places: list[tuple[int, str]],
) -> None:
    text_of = CachedPerBlock(lambda block: block.text)
    alive: dict[int, Block] = {}
    for place, text in places:
        alive[place] = Block.user(text)  # the one before it dies, and leaves its identity

        assert text_of(alive[place]) == text


def test_what_was_found_dies_with_the_block_or_is_forgotten() -> None:
    class Found:
        """A result that a weak reference can watch."""

    alive: WeakSet[Found] = WeakSet()

    @CachedPerBlock
    def found(_block: Block) -> Found:
        alive.add(result := Found())
        return result

    blocks = [Block.user(str(number)) for number in range(9)]
    assert all(found(block) is found(block) for block in blocks)
    del blocks[3:]
    assert len(alive) == 3

    found.cache_clear()

    assert len(alive) == 0
