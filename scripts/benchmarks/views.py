"""What a model is sent: from a session that is open, and from a file that nobody has opened."""

from contextlib import closing
from functools import partial
from importlib import import_module
from pathlib import Path

from .figure import Found, Options, Times, against, named
from .timing import fresh, paired
from .twins import Twins, raw_reopened, reopened


def view(options: Options) -> Found:
    """A summary and the 50 blocks that a compaction kept."""
    for compress in (False, True):
        folder, ops = options.folder / f"view-{compress}", range(options.ops)
        with closing(Twins(folder, compress=compress)) as both:
            both.fill(options.blocks)
            kept = both.compact()
            times = paired(ops, both.view, both.raw.view)
            what = named(f"warm view of {kept} kept", compress)
            yield against(what, "ms", times, most=None if compress else 0.25)
            times = paired(ops, both.messages, both.raw.view)
            yield against(named("the same as neutral messages", compress), "ms", times)
        runs = fresh(partial(cold, folder), range(options.processes))
        times = [ours for (ours,), _ in runs], [raw for _, (raw,) in runs]
        what = named(f"cold open and view of {kept} kept", compress)
        yield against(what, "ms", times, most=None if compress else 3)


def cold(folder: Path, number: int) -> Times:
    """Both once, in a process that has imported and done nothing else."""
    import_module("zstandard")  # whoever compresses loads it when it is first needed
    both = (partial(act, folder, "benchmark") for act in (reopened, raw_reopened))
    return paired([None], *both, first=number)
