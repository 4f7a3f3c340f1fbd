"""Divides a conversation into chunks that a model's window holds, between groups where it can."""

from collections.abc import Callable, Iterator, Sequence

from .conversation_text import Passage, PassageGroup

CountTokens = Callable[[str], int]
"""Tokens of a text, as the model that reads it counts them or more."""

PASSAGE_FRAME_TOKENS = 16
"""Tokens of a passage besides its body: head, marks and handle."""


def count_cautiously(text: str) -> int:
    """More tokens than any usual tokenizer makes of a text: three letters each, others whole."""
    if text.isascii():
        return -(-len(text) // 3)
    plain = len(text.encode("ascii", "ignore"))
    return -(-plain // 3) + (len(text) - plain)


def measure_passages(passages: Sequence[Passage], count: CountTokens) -> int:
    """Tokens of passages as they are written down."""
    return sum(count(passage.body) + PASSAGE_FRAME_TOKENS for passage in passages)


def make_chunks(
    groups: Sequence[PassageGroup], room: int, count: CountTokens
) -> list[PassageGroup]:
    """The passages in order, in as few chunks of at most `room` tokens as come of filling each.

    A group is parted only where it is larger than the room by itself, and so is a passage.
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
    """The groups, and the passages and pieces of those that are larger than the room."""
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
    # What is dense in tokens may stand in one place: halve until every piece fits.
    while most > 1 and any(measure_passages([piece], count) > room for piece in pieces):
        most = max(most // 2, 1)
        pieces = list(passage.split(most))
    yield from pieces
