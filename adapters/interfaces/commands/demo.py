"""Implements `demo`: compacts a long session, and proves that nothing was lost."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from shutil import which
from tempfile import mkdtemp
from time import perf_counter
from typing import Any

import zstandard

from ....domain.blocks import BlockKind
from ....domain.errors import ImportFileError, NothingToCompactError
from ....domain.ranges import Ranges
from ....domain.token_estimate import compute_kind_shares, estimate_block
from ....projections.history_view import HistoryView
from ...analysis.verifier import verify
from ...runtime.compaction.outcome import CompactionOutcome
from ...runtime.importing.importer import import_files, list_wanted_files
from ...runtime.importing.transcript_import import ImportOptions
from ...runtime.sessions.session_store import SessionStore
from ...runtime.sessions.stored_session import StoredSession
from ..command_line.printing import (
    clip_text,
    format_bar,
    format_count,
    get_width,
    pick,
    print_fields,
    print_list,
    print_text,
    show_progress,
)
from ..command_line.sessions import open_call_store
from ..command_line.verbs import DATABASE_VARIABLE, Answer, Invocation, argument
from .compact import outcome_to_json
from .upkeep import describe_verdict, verdict_to_json

SAMPLE_FILE = Path(__file__).parents[1] / "sample.jsonl.zst"
"""An invented Claude Code transcript, which `scripts/make_sample.py` made."""
MAX_TRIED_SESSIONS = 5
_TOUR_KEYS = ("session", "before", "after", "compaction", "left", "recalled", "verify")
MAX_SUMMARY_LINES = 12


def demo(
    call: Invocation,
    path: Path | None = argument("PATH", "Your transcripts; else a sample that is shipped.", None),
) -> Answer:
    """Works on a new database in a temporary folder, or on the one that --db names."""
    began = perf_counter()
    if path is not None and not path.exists():
        raise ImportFileError(f"{path} does not exist")
    folder = None if call.db and path else Path(mkdtemp(prefix="cutbank-demo-"))
    if folder and not call.db:
        call = call.merge(Invocation(db=str(folder / "demo.db")))
    if folder and not path:
        write_sample(path := folder / "sample.jsonl")
    assert path is not None, "it is named, or was written"
    with open_call_store(call, creates=True) as store:
        with show_progress("importing") as progress:
            files, options = list_wanted_files(path), ImportOptions(call.namespace)
            reports = list(import_files(store, files, options, progress=progress))
        names = list(dict.fromkeys(name for report in reports for name in report.sessions))
        sessions = [store.session(name, namespace=call.namespace, create=False) for name in names]
        compacted, reasons = _compact_largest(sessions)
        document: dict[str, Any] = {
            "database": store.name,
            "path": str(path),
            "seconds": 0.0,
            "too_small": reasons,
            "files": len(reports),
            "errors": sum(len(report.errors) for report in reports),
            "sessions": names,
        }
        document |= _tour_to_json(store, *compacted) if compacted else dict.fromkeys(_TOUR_KEYS)
        tokens = sum(session.log.state.tokens for session in sessions)
    document["seconds"] = round(perf_counter() - began, 3)
    if compacted is None:
        return Answer(document, partial(_print_reasons, document, tokens), is_good=bool(sessions))
    is_good = document["verify"]["ok"] and all(one["original"] for one in document["recalled"])
    return Answer(document, partial(_print_tour, document, tokens), is_good=is_good)


def write_sample(path: Path) -> None:
    """Write the sample session to `path`; the bytes are always the same."""
    path.write_bytes(zstandard.decompress(SAMPLE_FILE.read_bytes()))


def _compact_largest(
    sessions: Sequence[StoredSession],
) -> tuple[tuple[StoredSession, HistoryView, CompactionOutcome] | None, dict[str, str]]:
    """Compact the largest possible view; also return the reasons why others could not be."""
    reasons: dict[str, str] = {}
    largest = sorted(sessions, key=lambda session: -session.log.state.tokens)[:MAX_TRIED_SESSIONS]
    # The view of a log with recorded compactions may be small.
    views = [(session, session.view()) for session in largest]
    for session, before in sorted(views, key=lambda pair: -pair[1].tokens):
        try:
            outcome = session.compact()
        except NothingToCompactError as error:
            since = "since the last compaction " if before.boundary else ""
            reasons[session.key] = f"{since}{error}"
            continue
        if outcome.compacted:
            return (session, before, outcome), reasons
        reasons[session.key] = outcome.reason
    return None, reasons


def _tour_to_json(
    store: SessionStore, session: StoredSession, before: HistoryView, outcome: CompactionOutcome
) -> dict[str, Any]:
    """Recall a tool's result that the summary names, if any, and the largest block that left."""
    after = session.view()
    left = [entry for entry in before.entries if entry.position in outcome.left]
    left.sort(key=lambda entry: -entry.tokens)
    cited = after.summary.cites if after.summary else Ranges()
    named = [entry for entry in left if entry.position in cited]
    results = [entry for entry in named if entry.block.kind is BlockKind.TOOL_RESULT]
    chosen = {entry.position: entry.block for entry in [*(results or named)[:1], *left[:1]]}
    shares = compute_kind_shares((entry.block.kind, entry.tokens) for entry in left)
    return {
        "session": session.key,
        "before": {"tokens": before.tokens, "blocks": len(before.entries)},
        "after": {"tokens": after.tokens, "blocks": len(after.entries)},
        "compaction": outcome_to_json(outcome, after.coordinate.lineage),
        "left": {
            "handles": Ranges.of(entry.position for entry in left),
            "kinds": {share.kind: pick(share, "blocks tokens") for share in shares},
            "largest": [
                {
                    "handle": f"#{one.position}",
                    **pick(one, "kind=block.kind"),
                    "tokens": estimate_block(one.block),
                }
                for one in left[:5]
            ],
        },
        "recalled": [
            {
                **pick(found, "handle kind=block.kind"),
                "bytes": len(content := found.block.text.encode("utf-8", "surrogatepass")),
                "sha256": sha256(content).hexdigest(),
                "original": found.block == block,
            }
            for position, block in chosen.items()
            for found in session.recall(position)
        ],
        "verify": verdict_to_json(verify(store, session)),
    }


def _imported_fields(document: dict[str, Any], tokens: int) -> Iterator[tuple[str, str]]:
    files = format_count(document["files"], "transcript")
    sessions = format_count(len(document["sessions"]), "session")
    yield "imported", f"{files} with {sessions}, about {tokens:,} tokens"
    if errors := document["errors"]:
        yield "not read", f"{format_count(errors, 'damaged entry')}; `cutbank import -v` names each"


def _print_reasons(document: dict[str, Any], tokens: int) -> None:
    print_fields(_imported_fields(document, tokens))
    reasons = [f"{name}: {reason}" for name, reason in document["too_small"].items()]
    print_list("No session here can be compacted now", reasons, None)
    if keys := document["sessions"]:
        _print_commands(document, ("show", keys[0]), ("recall", keys[0], "last"))
    print_text("`cutbank demo` without a PATH takes a session that is long enough.")


def _print_tour(document: dict[str, Any], tokens: int) -> None:
    print_text(
        "cutbank keeps every turn an agent took, and serves a compacted view of it.", bold=True
    )
    print_text()
    print_fields([*_imported_fields(document, tokens), *_tour_fields(document)])
    summary = document["compaction"]["summary"] or ""
    lines = [line for line in summary.splitlines() if line.strip()]
    shown = [clip_text(line, get_width() - 2) for line in lines]
    print_list("The summary, where (#12) names a block", shown, MAX_SUMMARY_LINES)
    key, handle = document["session"], document["recalled"][0]["handle"][1:]
    dry_run = ("compact", key, "--set", "keep_tokens=5000", "--dry-run")
    _print_commands(document, ("view", key), ("recall", key, handle), dry_run, ("revert", key))


def _tour_fields(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "compacted", f"{document['session']}, by {document['compaction']['summariser']}"
    for name in ("before", "after"):
        size = document[name]
        bar = format_bar(size["tokens"] / document["before"]["tokens"])
        yield name, f"{bar} {size['tokens']:>7,} tokens, {format_count(size['blocks'], 'block')}"
    kinds = document["left"]["kinds"].items()
    parts = (f"{one['blocks']} {kind} with {one['tokens']:,} tokens" for kind, one in kinds)
    yield "left", ", ".join(parts)
    for one in document["recalled"]:
        as_was = "as before it left" if one["original"] else "NOT as before it left"
        size = f"{one['bytes']:,} bytes, sha256 {one['sha256'][:16]}..., {as_was}"
        yield "recalled", f"{one['handle']} {one['kind']}: {size}"
    yield "verified", describe_verdict(document["verify"])
    yield "took", f"{document['seconds']:.1f} s"


def _print_commands(document: dict[str, Any], *commands: tuple[str, ...]) -> None:
    program = Path(sys.argv[0]).absolute()
    # The environment may not be active: then the shell does not find the name alone.
    name = str(program) if which("cutbank") is None and program.name == "cutbank" else "cutbank"
    lines = [shlex.join([name, *words]) for words in commands]
    database = f"export {DATABASE_VARIABLE}={shlex.quote(document['database'])}"
    print_text()
    print_text("Your turn", bold=True)
    for line in (database, *lines):
        print_text(f"  $ {line}", verbatim=True)
