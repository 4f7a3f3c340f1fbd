"""Times operations of two stores side by side, and tasks in processes of their own."""

import gc
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

from .figure import Times


@runtime_checkable
class Closes(Protocol):
    """What an operation opened, and whoever times it has to close."""

    def close(self) -> None: ...


def elapsed(act: Callable[..., object], *arguments: Any) -> float:
    """Seconds of an act; what it opens is closed outside of them."""
    start = perf_counter()
    opened = act(*arguments)
    seconds = perf_counter() - start
    if isinstance(opened, Closes):
        opened.close()
    return seconds


def paired(items: Iterable[Any], *both: Callable[[Any], object], first: int = 0) -> Times:
    """Seconds of cutbank and of raw SQL for each item, in alternating order."""
    times: Times = ([], [])
    gc.collect()
    gc.freeze()
    for number, item in enumerate(items, first):
        for which in (0, 1) if number % 2 else (1, 0):
            times[which].append(elapsed(both[which], item))
    gc.unfreeze()
    return times


def alone(items: Iterable[Any], act: Callable[[Any], object]) -> float:
    """The median where nothing else warms or cools the caches between two."""
    return median(paired(items, act, str)[0])


def fresh(task: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """What a task makes of each item in a process of its own, one after the other."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        return list(pool.map(task, items))


def peak_memory() -> float:
    """This process's own peak in MB; 0 where /proc does not tell.

    Not getrusage: there a process inherits the peak of the one that started it.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
