"""Chooses where a provider caches a view: two points near its tail."""

from collections.abc import Sequence

_BLOCKS_BEFORE_TAIL = 3
"""How many blocks before the end the earlier point is: usually the later point of the previous
call, so that a request finds what the last one wrote."""


def find_cache_points(paths: Sequence[str | None], *, cache_last: bool = False) -> tuple[int, ...]:
    """Return the indices of the blocks with a cache point, in order, given each block's path.

    Adjacent blocks of one path belong together, and the point moves to the last of them. There are
    two points, one if both are on the last block, and none without blocks. `cache_last` requests a
    point on the last block, which is always there anyway.
    """
    count = len(paths)
    points = (
        {_find_run_end(paths, max(count - _BLOCKS_BEFORE_TAIL, 0)), count - 1} if count else set()
    )
    if cache_last and count:
        points.add(count - 1)
    return tuple(sorted(points))


def _find_run_end(paths: Sequence[str | None], index: int) -> int:
    """Return the last of the adjacent blocks with the same path."""
    while paths[index] and index + 1 < len(paths) and paths[index + 1] == paths[index]:
        index += 1
    return index
