"""How fast transcripts are imported, and in how much memory."""

import json
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from cutbank.adapters.interfaces.commands.demo import write_sample
from cutbank.adapters.runtime.importing.importer import import_files, list_wanted_files
from cutbank.adapters.runtime.sessions.session_store import open_store

from .figure import Figure, Found, Options, named
from .timing import elapsed, fresh, peak_memory
from .workload import turns

LEAST, MOST = 15, 150
"""MB/s, and MB of memory."""
SESSION = "5a3c1f0e-0000-4000-8000-000000000001"
LONGEST = 8_000_000
"""Bytes of the longest line."""
SAID = {"sessionId": SESSION, "isSidechain": False, "timestamp": "2026-03-10T08:14:07.212Z"}

Entry = dict[str, Any]


def transcripts(options: Options) -> Found:
    """Copies of the sample session; and one with lines as long as any that is read."""
    samples, long = options.folder / "samples", options.folder / "long"
    for folder in (samples, long):
        folder.mkdir()
    write_samples(samples, options.blocks // 1_000)
    write_long(long / "long.jsonl", 2 if options.smoke else 12)
    for folder, name in ((samples, "transcripts"), (long, f"lines up to {LONGEST / 1e6:.0f} MB")):
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        for compress in (False, True):
            task = partial(imported, folder)
            runs = fresh(task, [compress] * max(1, options.processes // 3))
            speed, peak = size / median(run[0] for run in runs), median(run[1] for run in runs)
            what = named(f"import of {size:.1f} MB of {name}", compress)
            plain = not compress
            target, met = (f">= {LEAST} MB/s", speed >= LEAST) if plain else ("", None)
            yield Figure(what, "MB/s", speed, target=target, met=met)
            target, met = (f"<= {MOST} MB", peak <= MOST) if plain else ("", None)
            yield Figure(named(f"peak RSS, {name}", compress), "MB", peak, target=target, met=met)
    yield from together(samples, options)


def together(samples: Path, options: Options) -> Found:
    """The same by two processes, which take half a second to start."""
    size = sum(path.stat().st_size for path in samples.iterdir()) / 1e6
    runs = fresh(partial(imported, samples, jobs=2), [False] * max(1, options.processes // 3))
    speed = size / median(run[0] for run in runs)
    yield Figure(f"import of {size:.1f} MB of transcripts by 2 processes", "MB/s", speed)


def imported(folder: Path, compress: bool, *, jobs: int = 1) -> tuple[float, float]:
    """Seconds, and this process's own peak in MB."""
    with TemporaryDirectory(dir=folder.parent) as made:
        with open_store(Path(made, "new.db"), compress=compress) as store:
            reports = list[Any]()
            files = list_wanted_files(folder)
            taken = elapsed(lambda: reports.extend(import_files(store, files, jobs=jobs)))
        for report in reports:
            assert report.complete, report
            assert report.added, report
            assert not report.errors, report
    return taken, peak_memory()


def write_samples(folder: Path, copies: int) -> None:
    """The sample session, and copies that are sessions of their own."""
    write_sample(folder / "0.jsonl")
    text = (folder / "0.jsonl").read_text("utf-8")
    session = json.loads(text[: text.index("\n")])["sessionId"]
    for number in range(1, copies):
        copy = text.replace(session, f"{session[:-4]}{number:04}")
        (folder / f"{number}.jsonl").write_text(copy, "utf-8")


def write_long(path: Path, pairs: int) -> None:
    """Calls whose results are as long as a line may be: text and images, turn about."""
    with path.open("w", encoding="utf-8") as file:
        for entry in _linked(_entries(pairs)):
            line = json.dumps(entry, ensure_ascii=False) + "\n"
            assert len(line.encode()) <= LONGEST, f"a line of {len(line)} bytes would not be read"
            file.write(line)


def _entries(pairs: int) -> Iterator[Entry]:
    room = LONGEST - 2_000
    dice, texts = Random(5), (piece["text"] for turn in turns(seed=5) for piece in turn)  # noqa: S311 - nothing here is secret
    yield {"type": "user", "message": {"role": "user", "content": "Look at all of it."}}
    for number in range(pairs):
        call = f"toolu_{number:04}"
        use = {"type": "tool_use", "id": call, "name": "Read", "input": {"path": f"{number}"}}
        yield {"type": "assistant", "message": _message(f"msg_{number}", use)}
        content: Any
        if number % 2:
            data = b64encode(dice.randbytes(room // 4 * 3)).decode()
            source = {"type": "base64", "media_type": "image/png", "data": data}
            content = [{"type": "image", "source": source}]
        else:
            content = _long_text(texts, room)
        result = {"type": "tool_result", "tool_use_id": call, "content": content}
        yield {"type": "user", "message": {"role": "user", "content": [result]}}
    yield {"type": "assistant", "message": _message("msg_end", {"type": "text", "text": "Done."})}


def _message(id: str, *content: Entry) -> Entry:
    usage = {"input_tokens": 9, "output_tokens": 9}
    said = {"id": id, "role": "assistant", "model": "m-1", "usage": usage}
    return said | {"content": list(content)}


def _long_text(texts: Iterator[str], room: int) -> str:
    """Text of that many bytes in JSON, where some characters take two."""
    pieces: list[str] = []
    for piece in texts:
        room -= len(json.dumps(piece))
        if room < 0:
            break
        pieces.append(piece)
    return "".join(pieces)


def _linked(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Each entry follows the one before."""
    above = None
    for number, entry in zip(count(1), entries, strict=False):
        id = f"00000000-0000-4000-8000-{number:012}"
        yield SAID | {"uuid": id, "parentUuid": above} | entry
        above = id
