"""Where a view says a provider may keep what it has read: near its tail, twice."""

from collections.abc import Sequence

_BLOCKS_BEFORE_TAIL = 3
"""The earlier point is this many blocks before the end: the later one of the call before, mostly,
so that the next request finds what this one wrote."""


def find_cache_points(paths: Sequence[str | None], *, cache_last: bool = False) -> tuple[int, ...]:
    """Indices of the blocks that carry a point, in order, by the path that each block shows.

    Blocks of one path, one after another, are one thing: the point moves to the last of them. So
    there are two, one where both would be the last block, none where there is no block.
    `cache_last` asks for the last block, which every rule here marks anyway.
    """
    count = len(paths)
    points = (
        {_find_run_end(paths, max(count - _BLOCKS_BEFORE_TAIL, 0)), count - 1} if count else set()
    )
    if cache_last and count:
        points.add(count - 1)
    return tuple(sorted(points))


def _find_run_end(paths: Sequence[str | None], index: int) -> int:
    """The last block of those that show the same path from here on."""
    while paths[index] and index + 1 < len(paths) and paths[index + 1] == paths[index]:
        index += 1
    return index
