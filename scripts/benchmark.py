"""Measures cutbank beside hand-written sqlite3: the same blocks, op by op, equally durable."""

import argparse
import gc
import json
import math
import os
import platform
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module, metadata
from itertools import count, groupby, islice
from multiprocessing import get_context
from operator import itemgetter
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, ClassVar

import orjson
from rich.console import Console
from rich.table import Table

from cutbank import Block, SessionStore, ToolCall, ToolResult
from cutbank.adapters.session_store import open_store
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.summariser import Draft, Material
from cutbank.domain.window import Plan, Window
from cutbank.projections.rendering.catalog import render

Piece = dict[str, Any]
Times = tuple[list[float], list[float]]
KEPT, TURN = 50, 14
SUMMARY = "This is what left the view. " * 70
PRAGMAS = "foreign_keys = ON", "temp_store = MEMORY", "mmap_size = 268435456"  # as cutbank's
IMPORTED = (
    "import json, sys, time; before = set(sys.modules); start = time.perf_counter(); import {0};"
    "print(json.dumps([time.perf_counter() - start, sorted(set(sys.modules) - before)]))"
)


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    what: str
    unit: str
    cutbank: float
    raw: float | None = None
    ratio: float | None = None
    target: str = ""
    met: bool | None = None


@dataclass(frozen=True)
class Options:
    """Where to measure, and how much."""

    folder: Path
    sizes: list[int]
    ops: int
    blocks: int
    processes: int


Found = Iterator[Figure | str]


@dataclass(frozen=True)
class KeepNewest:
    """A policy that keeps the newest 50 blocks."""

    name: ClassVar[str] = "keep-newest"

    def plan(self, window: Window) -> Plan:
        return Plan(window.items[-KEPT].position, "measured", summary_tokens=len(SUMMARY))


@dataclass(frozen=True)
class SaysTheSame:
    """A summariser that costs nothing."""

    name: str = "measured"

    def summarise(self, _: Material) -> Draft:
        return Draft(SUMMARY)


def turns(seed: int, pairs: int | None = None) -> Iterator[list[Piece]]:
    """A prompt, an answer and 3-8 calls with their results, for ever; the same everywhere.

    Results are log-normal with a median of 1.5 KB and a p99 of 60 KB; arguments are a seventh.
    Piece by piece the text compresses to 0.45, about as the text of real sessions does.
    """
    dice = random.Random(seed)  # noqa: S311 - nothing here is secret
    words = ["".join(dice.choices("aeioulnrstdkmp", k=dice.randint(2, 9))) for _ in range(4_000)]
    marks = (" ", " ", " ", " ", "\n", ", ", ". ", " = ", "(", ")\n    ", ": ", '"', "/", "_")
    often = [1 / rank for rank in range(1, 4_001)]  # as words are: a few are most of them
    told = dice.choices(words, often, k=200_000)
    pool = "".join(word + dice.choice(marks) for word in told)

    def text(middle: float, spread: float) -> str:
        length = min(16 + int(dice.lognormvariate(math.log(middle), spread)), 512 * 1024)
        start = dice.randrange(len(pool) - length)
        return pool[start : start + length]

    for turn in count(1):
        said: list[Piece] = [
            {"kind": "user", "text": text(300, 0.8)},
            {"kind": "assistant", "text": text(400, 0.7)},
        ]
        for _ in range(pairs or dice.randint(3, 8)):
            call = {"tool_call_id": f"call_{dice.getrandbits(96):024x}"}
            arguments = json.dumps({"path": dice.choice(words), "body": text(225, 1.586)})
            said.append({"kind": "tool_call", "name": "bash", "text": arguments, **call})
            said.append({"kind": "tool_result", "text": text(1_500, 1.586), **call})
        at = datetime.fromtimestamp(1_760_000_000 + turn, UTC).isoformat()
        yield [{**piece, "turn": turn, "timestamp": at} for piece in said]


def as_block(piece: Piece) -> Block | ToolCall | ToolResult:
    call, text = piece.get("tool_call_id", ""), piece["text"]
    match piece["kind"]:
        case "tool_call":
            return ToolCall(tool_call_id=call, name=piece["name"], arguments=text)
        case "tool_result":
            return ToolResult(tool_call_id=call, content=text)
        case kind:
            return Block.user(text) if kind == "user" else Block.assistant(text)


class Raw:
    """What one would write by hand: one table, one index, prepared statements."""

    INSERT = "INSERT INTO events (session, seq, kind, body) VALUES (?, ?, ?, ?)"

    def __init__(self, path: Path, synchronous: str, key: str) -> None:
        self.db = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        for pragma in ("journal_mode = WAL", f"synchronous = {synchronous}", *PRAGMAS):
            self.db.execute(f"PRAGMA {pragma}")
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, session BLOB, seq INTEGER,"
            " kind TEXT, body BLOB, UNIQUE (session, seq))"
        )
        self.db.execute("CREATE TABLE IF NOT EXISTS cuts (session BLOB PRIMARY KEY, seq, summary)")
        self.session, self.seq = key.encode(), 0

    def append(self, piece: Piece) -> None:
        self.db.execute(self.INSERT, self._row(piece))

    def append_all(self, pieces: Iterable[Piece]) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(self.INSERT, [self._row(piece) for piece in pieces])
        self.db.execute("COMMIT")

    def _row(self, piece: Piece) -> tuple[bytes, int, str, bytes]:
        self.seq += 1
        return self.session, self.seq, piece["kind"], orjson.dumps(piece)

    def compact(self, kept: int) -> None:
        row = (self.session, self.seq - kept, SUMMARY)
        self.db.execute("INSERT OR REPLACE INTO cuts VALUES (?, ?, ?)", row)

    def view(self, _: object = None) -> list[Piece]:
        query = "SELECT seq, summary FROM cuts WHERE session = ?"
        seq, summary = self.db.execute(query, (self.session,)).fetchone()
        query = "SELECT body FROM events WHERE session = ? AND seq > ? ORDER BY seq"
        found = self.db.execute(query, (self.session, seq))
        return [{"kind": "user", "text": summary}, *(orjson.loads(body) for (body,) in found)]

    def close(self) -> None:
        self.db.close()


class Twins:
    """One session in cutbank, and the same in raw SQLite."""

    def __init__(
        self, folder: Path, synchronous: str = "FULL", key: str = "benchmark", **settings: Any
    ) -> None:
        folder.mkdir(exist_ok=True)
        ours, raw = folder / "cutbank.db", folder / "raw.db"
        self.store = open_store(ours, synchronous=synchronous, **settings)
        self.session, self.raw = self.store.session(key), Raw(raw, synchronous, key)
        self.pieces = (piece for turn in turns(seed=1) for piece in turn)
        self.positions: list[int] = []

    def append(self, piece: Piece) -> None:
        self.positions.append(self.session.append(as_block(piece)).last)

    def append_all(self, pieces: Iterable[Piece]) -> None:
        """A turn, or a part of one, in one transaction: its blocks stand side by side."""
        done = self.session.append(*map(as_block, pieces))
        self.positions += range(done.first, done.last + 1)

    def fill(self, blocks: int) -> int:
        """Append to both, turn by turn; returns the bytes of the raw bodies."""
        size = 0
        for _, pieces in groupby(islice(self.pieces, blocks), itemgetter("turn")):
            turn = list(pieces)
            self.append_all(turn)
            self.raw.append_all(turn)
            size += sum(len(orjson.dumps(piece)) for piece in turn)
        return size

    def view(self, _: object = None) -> object:
        return self.session.view()

    def compact(self) -> int:
        """Keep the newest blocks in both: 50, or as many as the nearest legal cut leaves."""
        self.session.compact(KeepNewest(), summariser=SaysTheSame())
        kept = len(self.session.view().entries)
        self.raw.compact(kept)
        return kept

    def close(self) -> None:
        self.store.close()
        self.raw.close()


def elapsed(act: Callable[..., object], *arguments: Any) -> float:
    """Seconds of an act; what it opens is closed outside of them."""
    start = perf_counter()
    opened = act(*arguments)
    seconds = perf_counter() - start
    if isinstance(opened, Raw | SessionStore):
        opened.close()
    return seconds


def paired(items: Iterable[Any], *both: Callable[[Any], object], first: int = 0) -> Times:
    """Seconds of cutbank and of raw SQLite for each item, in alternating order."""
    times: Times = ([], [])
    gc.collect()
    gc.freeze()
    for number, item in enumerate(items, first):
        for which in (0, 1) if number % 2 else (1, 0):
            times[which].append(elapsed(both[which], item))
    gc.unfreeze()
    return times


def alone(times: int, act: Callable[[Any], object]) -> float:
    """The median where nothing else warms or cools the caches between two."""
    return median(paired(range(times), act, str)[0])


def against(
    what: str, unit: str, times: Times, *, most: float | None = None, ratio: float | None = None
) -> Figure:
    """The medians, and the median ratio of single operations; a target for one or the other."""
    ours, raw = (median(side) * {"us": 1e6, "ms": 1e3}[unit] for side in times)
    found = median(mine / other for mine, other in zip(*times, strict=True))
    target = f"<= {ratio}x" if ratio else f"<= {most} {unit}" if most else ""
    met = found <= ratio if ratio else ours <= most if most else None
    return Figure(what, unit, ours, raw, found, target, met)


def append(options: Options) -> Found:
    for synchronous, ratio in (("FULL", 1.25), ("NORMAL", 1.6)):
        with closing(Twins(options.folder / synchronous, synchronous)) as both:
            both.fill(options.blocks // 10)
            times = paired(islice(both.pieces, options.ops), both.append, both.raw.append)
        yield against(f"append, {synchronous}, p50", "us", times, ratio=ratio)
        for percent in (90, 99):
            ours, raw = (quantiles(side, n=100)[percent - 1] * 1e6 for side in times)
            yield Figure(f"append, {synchronous}, p{percent}", "us", ours, raw, ours / raw)


def turn(options: Options) -> Found:
    with closing(Twins(options.folder / "turn")) as both:
        both.fill(options.blocks // 10)
        fourteen = islice(turns(seed=2, pairs=(TURN - 2) // 2), options.ops // 4)
        times = paired(fourteen, both.append_all, both.raw.append_all)
    ours, raw = (TURN / median(side) for side in times)
    ratio = median(other / mine for mine, other in zip(*times, strict=True))
    yield Figure(f"turn of {TURN} blocks", "blocks/s", ours, raw, ratio, ">= 0.6x", ratio >= 0.6)


def view(options: Options) -> Found:
    folder, ops = options.folder / "view", range(options.ops)
    with closing(Twins(folder)) as both:
        both.fill(options.blocks)
        kept, session = both.compact(), both.session
        yield against(
            f"warm view of {kept} kept", "ms", paired(ops, both.view, both.raw.view), most=0.25
        )
        times = paired(ops, lambda _: render(session.view(), "neutral"), both.raw.view)
        yield against("the same as neutral messages", "ms", times)
    runs = fresh(partial(cold, folder), range(options.processes))
    times = [ours for (ours,), _ in runs], [raw for _, (raw,) in runs]
    yield against(f"cold open and view of {kept} kept", "ms", times, most=3)


def reopened(folder: Path, key: str, _: object = None) -> SessionStore:
    store = open_store(folder / "cutbank.db")
    store.session(key, create=False).view()
    return store


def raw_reopened(folder: Path, key: str, _: object = None) -> Raw:
    raw = Raw(folder / "raw.db", "FULL", key)
    raw.view()
    return raw


def fresh(task: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """What a task makes of each item in a process of its own, one after the other."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        return list(pool.map(task, items))


def cold(folder: Path, number: int) -> Times:
    """Both once, in a process that has imported and done nothing else."""
    both = (partial(act, folder, "benchmark") for act in (reopened, raw_reopened))
    return paired([None], *both, first=number)


def growth(options: Options) -> Found:
    found, sizes, folder = dict[str, list[float]](), options.sizes, options.folder / "growth"

    def figure(what: str, size: int, ours: float, raw: float | None = None) -> Figure:
        found.setdefault(what, []).append(ours)
        return Figure(
            f"{what} at {size:,}", "us", ours * 1e6, raw and raw * 1e6, raw and ours / raw
        )

    # NORMAL, for an fsync that wanders would hide what grows; and in files that were written to.
    with closing(Twins(folder, "NORMAL", "warm-up")) as warm_up:
        warm_up.fill(options.blocks // 5)
    with closing(Twins(folder, "NORMAL")) as both:
        for before, size in zip((0, *sizes), sizes, strict=False):
            last = min(size - before, size // 2, 500)
            both.fill(size - before - last)
            times = paired(islice(both.pieces, last), both.append, both.raw.append)
            yield figure("append, NORMAL", size, *map(median, times))
            fork = both.session.fork(f"scattered-{size}")
            both.compact()
            yield figure("warm view", size, alone(300, both.view))
            yield figure("reopened view", size, alone(30, partial(reopened, folder, "benchmark")))
            fork.pin(Ranges.of(both.positions[::20]))
            fork.compact(KeepNewest(), summariser=SaysTheSame())
            kept = len(fork.view().entries)
            seconds = alone(9, partial(reopened, folder, fork.key)) / kept
            yield figure("scattered view, per block", size, seconds)
    for what, values in found.items() if len(sizes) > 1 else ():
        exponent = math.log(values[-1] / values[0]) / math.log(sizes[-1] / sizes[0])
        met = exponent <= 0.1
        yield Figure(f"growth: {what}", "exponent", exponent, target="<= 0.1", met=met)


def imports(options: Options) -> Found:
    for module, most in (("cutbank", 30), ("cutbank.adapters.session_store", 0)):
        command = [sys.executable, "-c", IMPORTED.format(module)]
        runs = [json.loads(subprocess.check_output(command)) for _ in range(options.processes)]
        taken, loaded = median(run[0] for run in runs) * 1e3, runs[0][1]
        target, met = (f"<= {most} ms", taken <= most) if most else ("", None)
        yield Figure(f"import {module}", "ms", taken, target=target, met=met)
        packages = sorted({name.split(".")[0] for name in loaded} - sys.stdlib_module_names)
        yield f"import {module} loads {len(loaded)} modules; packages: {', '.join(packages)}"


def transcripts(options: Options) -> Found:
    try:
        sample, _ = (import_module(f"cutbank.adapters.{x}") for x in ("sample_session", "importer"))
    except ImportError as error:
        yield f"transcripts: skipped, {error}"
        return
    folder = options.folder / "transcripts"
    folder.mkdir()
    sample.write_sample(folder / "0.jsonl")
    text = (folder / "0.jsonl").read_text("utf-8")
    session = json.loads(text[: text.index("\n")])["sessionId"]
    for number in range(1, options.blocks // 1_000):
        copy = text.replace(session, f"{session[:-4]}{number:04}")
        (folder / f"{number}.jsonl").write_text(copy, "utf-8")
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    runs = fresh(imported, [folder] * (options.processes // 3))
    speed = size / median(taken for taken, _ in runs)
    what = f"import of {size:.1f} MB of transcripts"
    yield Figure(what, "MB/s", speed, target=">= 15 MB/s", met=speed >= 15)
    yield Figure("peak RSS of that process", "MB", median(peak for _, peak in runs))


def imported(folder: Path) -> tuple[float, float]:
    """Seconds, and this process's own peak in MB; 0 where /proc does not tell."""
    import_path = import_module("cutbank.adapters.importer").import_path
    with TemporaryDirectory(dir=folder.parent) as made, open_store(Path(made, "new.db")) as store:
        reports = list[Any]()
        taken = elapsed(lambda: reports.extend(import_path(store, folder)))
        assert all(report.complete and report.added for report in reports), reports
    # Not getrusage: there a process inherits the peak of the one that started it.
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return taken, sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def disk(options: Options) -> Found:
    for compress, most in ((False, 1.15), (True, 0.6)):
        folder = options.folder / f"disk-{compress}"
        with closing(Twins(folder, compress=compress)) as both:
            payload = both.fill(options.blocks)
        ours, raw = (
            (folder / f"{name}.db").stat().st_size / payload for name in ("cutbank", "raw")
        )
        what = f"disk per payload, {'compressed' if compress else 'plain'}"
        yield Figure(what, "bytes/byte", ours, raw, ours / raw, f"<= {most}", ours <= most)


PARTS = {part.__name__: part for part in (append, turn, view, growth, imports, transcripts, disk)}


def machine(folder: Path) -> dict[str, str]:
    """Where and with what it is measured."""
    with (folder / "fsync").open("wb", buffering=0) as file:
        synced = [file.write(b"x" * 4_096) and elapsed(os.fsync, file) for _ in range(50)]
    packages = ("eventsourcing", "pydantic", "orjson", "zstandard")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load before": f"{os.getloadavg()[0]:.1f}",
        "fsync": f"{median(synced) * 1e6:.0f} us",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{package: metadata.version(package) for package in packages},
    }


def row_of(figure: Figure) -> list[str]:
    numbers = (figure.cutbank, figure.raw, figure.ratio)
    shown = ("" if x is None else f"{x:,.0f}" if x >= 1_000 else f"{x:.3g}" for x in numbers)
    met = {None: "", True: "met", False: "missed"}[figure.met]
    return [figure.what, figure.unit, *shown, figure.target, met]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="every part, small, in seconds")
    parser.add_argument("--sizes", help="blocks of the growing session: 100,1000,10000,100000")
    parser.add_argument("--only", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument("--dir", type=Path, help="folder on the disk to measure")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--check", action="store_true", help="exit 1 where anything grows")
    given = parser.parse_args()
    sizes = given.sizes or ("100,400" if given.smoke else "100,1000,10000,100000")
    console = Console(width=None if sys.stdout.isatty() else 100)
    figures: list[Figure] = []
    with TemporaryDirectory(dir=given.dir, prefix="cutbank-benchmark-") as made:
        options = Options(
            folder=Path(made),
            sizes=sorted(int(size) for size in sizes.split(",")),
            ops=100 if given.smoke else 2_000,
            blocks=300 if given.smoke else 10_000,
            processes=3 if given.smoke else 15,
        )
        where = machine(options.folder)
        for name in given.only or PARTS:
            for found in PARTS[name](options):
                if isinstance(found, Figure):
                    figures.append(found)
                else:
                    console.print(found)
    table = Table("what", "unit", "cutbank", "raw", "ratio", "target", "")
    for figure in figures:
        table.add_row(*row_of(figure))
    console.print(table, ", ".join(f"{name} {value}" for name, value in where.items()))
    if given.json:
        report = {"where": where, "figures": [asdict(figure) for figure in figures]}
        given.json.write_text(json.dumps(report, indent=1) + "\n")
    grown = any(figure.unit == "exponent" and not figure.met for figure in figures)
    return int(given.check and grown)


if __name__ == "__main__":
    sys.exit(main())
