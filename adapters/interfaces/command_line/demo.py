"""Shows in a minute what cutbank is for: compact a long session, and get back what left."""

from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter
from typing import Annotated, Any

import typer

from ....domain.errors import ImportFileError
from ...runtime.importing.importer import import_path
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ...transcripts.reports import FileReport
from ..sample.sample_session import write_sample
from . import demo_story as story
from .database import opened_store
from .demo_tour import as_json, toured
from .invocation import Invocation
from .printing import say_json
from .progress_bar import progress_bar


def demo(
    call: Invocation,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="Your transcripts; else a sample that is shipped."),
    ] = None,
) -> None:
    """Show what this is: compact a long session, recall what left.

    Works on a new database in a temporary folder, or on the one that --db names.
    """
    began = perf_counter()
    if path is not None and not path.exists():
        raise ImportFileError(f"{path} does not exist")
    call, transcripts = _prepared(call, path)
    with opened_store(call, creates=True) as store:
        if not call.as_json:
            story.tell_opening(sample=path is None)
        reports = _imported(store, call, transcripts)
        sessions = _by_size(store, call, reports)
        if not call.as_json:
            story.tell_import(reports, sessions, perf_counter() - began)
        tour, reasons = toured(store, sessions)
        seconds = perf_counter() - began
        if call.as_json:
            told = {"path": str(transcripts), "seconds": round(seconds, 3), "too_small": reasons}
            say_json({"database": store.name, **told, **_counts(reports), **as_json(tour)})
        elif tour is None:
            story.tell_too_small(reasons, store.name)
        else:
            story.tell_tour(tour, store.name, seconds)
    if not sessions or (tour and not tour.is_well):
        raise typer.Exit(1)


def _prepared(call: Invocation, path: Path | None) -> tuple[Invocation, Path]:
    """Where the demo works, and what it imports; made in a temporary folder where not named."""
    if call.db is not None and path is not None:
        return call, path
    folder = Path(mkdtemp(prefix="cutbank-demo-"))
    if call.db is None:
        call = call.then(Invocation(db=str(folder / "demo.db")))
    if path is None:
        path = folder / "sample.jsonl"
        write_sample(path)
    return call, path


def _imported(store: SessionStore, call: Invocation, path: Path) -> list[FileReport]:
    with progress_bar("importing", in_bytes=True) as progress:
        return list(import_path(store, path, namespace=call.namespace, progress=progress))


def _by_size(
    store: SessionStore, call: Invocation, reports: list[FileReport]
) -> list[StoredSession]:
    """The sessions that were imported, the largest first."""
    names = dict.fromkeys(name for report in reports for name in report.sessions)
    found = [store.session(name, namespace=call.namespace, create=False) for name in names]
    return sorted(found, key=lambda session: -session.log.state.tokens)


def _counts(reports: list[FileReport]) -> dict[str, Any]:
    return {
        "files": len(reports),
        "errors": sum(len(report.errors) for report in reports),
        "sessions": list(dict.fromkeys(name for report in reports for name in report.sessions)),
    }
