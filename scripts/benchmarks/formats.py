"""How fast the sample session is imported from each format that a file of lines has."""

from functools import partial
from pathlib import Path
from statistics import median

from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.adapters.transcripts.formats.catalog import FORMATS

from .figure import Figure, Found, Options
from .timing import fresh
from .transcripts import LEAST, imported, write_samples


def formats(options: Options) -> Found:
    """The sample session in copies, written in each of these formats and read from it again."""
    copies = options.folder / "copies"
    copies.mkdir()
    write_samples(copies, max(2, options.blocks // 2_000))
    names = [name for name, one in FORMATS.items() if one.begin_reading and one.write]
    for name in names:
        write_in(name, copies, options.folder / name)
    for name in names:
        folder = options.folder / name
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        task = partial(imported, folder)
        runs = fresh(task, [False] * max(1, options.processes // 3))
        speed = size / median(run[0] for run in runs)
        what = f"import of {size:.1f} MB of {name}"
        yield Figure(what, "MB/s", speed, target=f">= {LEAST} MB/s", met=speed >= LEAST)


def write_in(name: str, copies: Path, folder: Path) -> None:
    """Each session of the folder `copies` as a file of that format."""
    folder.mkdir()
    with open_store(folder.with_suffix(".db")) as store:
        list(import_path(store, copies))
        for number, session in enumerate(store.sessions()):
            if session.log.parent is None:
                export(session, name, folder / f"{number}{FORMATS[name].suffix}")
