"""Divides a conversation into chunks that fit a model's window, preferably between groups."""

from collections.abc import Callable, Iterator, Sequence

from .conversation_text import Passage, PassageGroup

CountTokens = Callable[[str], int]
"""Counts a text's tokens; must not count fewer than the reading model."""

PASSAGE_FRAME_TOKENS = 16
"""The tokens of a passage apart from its body: head, marks and handle."""


def count_cautiously(text: str) -> int:
    """Return an upper bound of tokens: one per three ASCII characters, one per other character."""
    if text.isascii():
        return -(-len(text) // 3)
    plain = len(text.encode("ascii", "ignore"))
    return -(-plain // 3) + (len(text) - plain)


def measure_passages(passages: Sequence[Passage], count: CountTokens) -> int:
    return sum(count(passage.body) + PASSAGE_FRAME_TOKENS for passage in passages)


def make_chunks(
    groups: Sequence[PassageGroup], room: int, count: CountTokens
) -> list[PassageGroup]:
    """Return the passages in order, in chunks of at most `room` tokens, each as full as possible.

    Only groups and passages larger than `room` are split.
    """
    chunks: list[PassageGroup] = []
    current: list[Passage] = []
    used = 0
    for part in _split_groups(groups, room, count):
        tokens = measure_passages(part, count)
        if current and used + tokens > room:
            chunks.append(tuple(current))
            current, used = [], 0
        current += part
        used += tokens
    return [*chunks, tuple(current)] if current else chunks


def _split_groups(
    groups: Sequence[PassageGroup], room: int, count: CountTokens
) -> Iterator[PassageGroup]:
    """Yield the groups; those larger than the room are split into passages or pieces."""
    for group in groups:
        if measure_passages(group, count) <= room:
            yield group
            continue
        for passage in group:
            if measure_passages([passage], count) <= room:
                yield (passage,)
            else:
                yield from ((piece,) for piece in _split_passage(passage, room, count))


def _split_passage(passage: Passage, room: int, count: CountTokens) -> Iterator[Passage]:
    tokens = max(count(passage.body), 1)
    most = max(len(passage.body) * max(room - PASSAGE_FRAME_TOKENS, 1) // tokens, 1)
    pieces = list(passage.split(most))
    # Dense text may be in one place, so halve until every piece fits.
    while most > 1 and any(measure_passages([piece], count) > room for piece in pieces):
        most = max(most // 2, 1)
        pieces = list(passage.split(most))
    yield from pieces
