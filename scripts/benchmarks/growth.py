"""One session that grows: nothing that is done to it may take longer for that."""

from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

from cutbank import CompactionOptions
from cutbank.domain.ranges import Ranges

from .figure import Found, Growth, Options, named
from .timing import alone, paired
from .twins import Twins, reopened
from .workload import KeepNewest, SaysTheSame


def growth(options: Options) -> Found:
    """Up to 100,000 blocks; a million with --large, without compression."""
    for compress in (False,) if options.large else (False, True):
        yield from _grown(options, options.folder / f"growth-{compress}", compress)


def _grown(options: Options, folder: Path, compress: bool) -> Found:
    sizes, grown = options.sizes, Growth(options.sizes)
    # NORMAL, for an fsync that wanders would hide what grows; and in files that were written to.
    with closing(Twins(folder, "NORMAL", "warm-up", compress=compress)) as warm_up:
        warm_up.fill(options.blocks // 5)
    with closing(Twins(folder, "NORMAL", compress=compress)) as both:
        for before, size in zip((0, *sizes), sizes, strict=False):
            last = min(size - before, size // 2, 500)
            both.fill(size - before - last)
            times = paired(islice(both.pieces, last), both.append, both.raw.append)
            yield grown.figure(named("append, NORMAL", compress), size, *map(median, times))
            fork = both.session.fork(f"scattered-{size}")
            both.compact()
            yield grown.figure(named("warm view", compress), size, alone(range(300), both.view))
            seconds = alone(range(30), partial(reopened, folder, "benchmark"))
            yield grown.figure(named("reopened view", compress), size, seconds)
            fork.pin(Ranges.of(both.positions[::20]))
            fork.compact(KeepNewest(), options=CompactionOptions(summarizers=[SaysTheSame()]))
            kept = len(fork.view().entries)
            seconds = alone(range(9), partial(reopened, folder, fork.key)) / kept
            yield grown.figure(named("scattered view, per block", compress), size, seconds)
    yield from grown.exponents()
