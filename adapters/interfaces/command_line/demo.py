"""Implements `demo`: compacts a long session, and recalls what left."""

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
from ..sample import write_sample
from . import demo_lines as story
from .database import open_call_store
from .demo_tour import run_tour, tour_to_json
from .invocation import Invocation
from .printing import print_json
from .progress_bar import show_progress


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
    call, transcripts = _prepare_demo(call, path)
    with open_call_store(call, creates=True) as store:
        if not call.as_json:
            story.print_opening(sample=path is None)
        reports = _import_files(store, call, transcripts)
        sessions = _sort_by_size(store, call, reports)
        if not call.as_json:
            story.print_import(reports, sessions, perf_counter() - began)
        tour, reasons = run_tour(store, sessions)
        seconds = perf_counter() - began
        if call.as_json:
            told = {"path": str(transcripts), "seconds": round(seconds, 3), "too_small": reasons}
            print_json(
                {"database": store.name, **told, **_count_imports(reports), **tour_to_json(tour)}
            )
        elif tour is None:
            story.print_too_small(reasons, store.name)
        else:
            story.print_tour(tour, store.name, seconds)
    if not sessions or (tour and not tour.has_passed):
        raise typer.Exit(1)


def _prepare_demo(call: Invocation, path: Path | None) -> tuple[Invocation, Path]:
    """Choose the database and the transcripts; make missing ones in a temporary folder."""
    if call.db is not None and path is not None:
        return call, path
    folder = Path(mkdtemp(prefix="cutbank-demo-"))
    if call.db is None:
        call = call.merge(Invocation(db=str(folder / "demo.db")))
    if path is None:
        path = folder / "sample.jsonl"
        write_sample(path)
    return call, path


def _import_files(store: SessionStore, call: Invocation, path: Path) -> list[FileReport]:
    with show_progress("importing", in_bytes=True) as progress:
        return list(import_path(store, path, namespace=call.namespace, progress=progress))


def _sort_by_size(
    store: SessionStore, call: Invocation, reports: list[FileReport]
) -> list[StoredSession]:
    """Return the imported sessions, the largest first."""
    names = dict.fromkeys(name for report in reports for name in report.sessions)
    found = [store.session(name, namespace=call.namespace, create=False) for name in names]
    return sorted(found, key=lambda session: -session.log.state.tokens)


def _count_imports(reports: list[FileReport]) -> dict[str, Any]:
    return {
        "files": len(reports),
        "errors": sum(len(report.errors) for report in reports),
        "sessions": list(dict.fromkeys(name for report in reports for name in report.sessions)),
    }
