"""One durable append, and a turn in one transaction."""

from contextlib import closing
from itertools import islice, product

from .figure import Found, Options, against, named, percentile, rate
from .timing import paired
from .twins import Twins
from .workload import TURN, turns


def append(options: Options) -> Found:
    """One block, durable when the call returns."""
    for compress, (synchronous, most) in product((False, True), (("FULL", 1.25), ("NORMAL", 1.6))):
        folder = options.folder / f"append-{synchronous}-{compress}"
        with closing(Twins(folder, synchronous, compress=compress)) as both:
            both.fill(options.blocks // 10)
            times = paired(islice(both.pieces, options.ops), both.append, both.raw.append)
        what = named(f"append, {synchronous}", compress)
        yield against(f"{what}, p50", "us", times, ratio=None if compress else most)
        for percent in (90, 99):
            yield percentile(what, percent, times)


def turn(options: Options) -> Found:
    """14 blocks in one transaction."""
    for compress in (False, True):
        with closing(Twins(options.folder / f"turn-{compress}", compress=compress)) as both:
            both.fill(options.blocks // 10)
            fourteen = islice(turns(seed=2, pairs=(TURN - 2) // 2), options.ops // 4)
            times = paired(fourteen, both.append_all, both.raw.append_all)
        ours, raw = ([TURN / seconds for seconds in side] for side in times)
        what = named(f"turn of {TURN} blocks", compress)
        yield rate(what, "blocks/s", (ours, raw), least=None if compress else 0.6)
