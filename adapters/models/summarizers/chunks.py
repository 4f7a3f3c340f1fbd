"""Divides a conversation into chunks that a model's window holds, between groups where it can."""

from collections.abc import Callable, Iterator, Sequence

from .conversation_text import Group, Passage

Count = Callable[[str], int]
"""Tokens of a text, as the model that reads it counts them or more."""

FRAME = 16
"""Tokens of a passage besides its body: head, marks and handle."""


def cautious(text: str) -> int:
    """More tokens than any usual tokenizer makes of a text: three letters each, others whole."""
    if text.isascii():
        return -(-len(text) // 3)
    plain = len(text.encode("ascii", "ignore"))
    return -(-plain // 3) + (len(text) - plain)


def size(passages: Sequence[Passage], count: Count) -> int:
    """Tokens of passages as they are written down."""
    return sum(count(passage.body) + FRAME for passage in passages)


def chunked(groups: Sequence[Group], room: int, count: Count) -> list[Group]:
    """The passages in order, in as few chunks of at most `room` tokens as come of filling each.

    A group is parted only where it is larger than the room by itself, and so is a passage.
    """
    chunks: list[Group] = []
    current: list[Passage] = []
    used = 0
    for part in _parts(groups, room, count):
        tokens = size(part, count)
        if current and used + tokens > room:
            chunks.append(tuple(current))
            current, used = [], 0
        current += part
        used += tokens
    return [*chunks, tuple(current)] if current else chunks


def _parts(groups: Sequence[Group], room: int, count: Count) -> Iterator[Group]:
    """The groups, and the passages and pieces of those that are larger than the room."""
    for group in groups:
        if size(group, count) <= room:
            yield group
            continue
        for passage in group:
            if size([passage], count) <= room:
                yield (passage,)
            else:
                yield from ((piece,) for piece in _pieces(passage, room, count))


def _pieces(passage: Passage, room: int, count: Count) -> Iterator[Passage]:
    tokens = max(count(passage.body), 1)
    most = max(len(passage.body) * max(room - FRAME, 1) // tokens, 1)
    pieces = list(passage.pieces(most))
    # What is dense in tokens may stand in one place: halve until every piece fits.
    while most > 1 and any(size([piece], count) > room for piece in pieces):
        most = max(most // 2, 1)
        pieces = list(passage.pieces(most))
    yield from pieces
