"""Shows one call of an audit: what it was sent, its record, and its request."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import typer

from ....domain.errors import InvalidSettingError
from ....domain.session_events import ModelCalled
from ....projections.audit_entries import AuditedCall, SentView, find_source_time
from ....projections.read_models.timestamps import format_timestamp
from ...analysis.auditing.audit import Audit, audit_call
from ...analysis.auditing.diffs import find_compaction_number
from ...analysis.replaying.recordings import read_calls
from ...runtime.sessions.stored_session import StoredSession
from ..command_line.blocks import parse_handle
from ..command_line.printing import INDENT, format_count, pick, print_json, print_text
from ..command_line.verbs import Invocation
from ..command_line.views import format_coordinate, format_place, print_view

_NUMBER = re.compile(r"[0-9]{1,15}")
_REPORT_FIELDS = "call_id model usage cost_usd latency_s stop_reason renderer fingerprint"


def find_call(session: StoredSession, word: str) -> AuditedCall:
    """Return the call that a word names: `12` is the twelfth, `#12` the one at that handle."""
    if word.strip().startswith("#"):
        return audit_call(session, at=parse_handle(word, _fail_if_asked))
    if word.strip().lower() == "last":
        return audit_call(session, len(read_calls(session)))
    if not _NUMBER.fullmatch(word.strip()):
        raise InvalidSettingError(f"{word!r} is not a call: write 12, last, or '#12'")
    return audit_call(session, int(word))


def _fail_if_asked(_: int) -> int:
    raise AssertionError("asked only where a word says `last`")


def call_to_json(call: AuditedCall) -> dict[str, Any]:
    """Return a call; the values of its record are null if there is none."""
    reported, shown = call.reported, call.shown
    report: dict[str, Any] = (
        pick(reported, _REPORT_FIELDS) if reported else dict.fromkeys(_REPORT_FIELDS.split())
    )
    if reported and reported.usage:
        report["usage"] = reported.usage.model_dump(mode="json")
    when = find_source_time(reported) if reported else None
    return {
        "number": call.number,
        "sees": call.last_seen_position,
        "answer": list(call.answer),
        "recorded": reported.originator_version if reported else None,
        "when": format_timestamp(when) if when else None,
        **report,
        **pick(shown, "proof why"),
        **pick(call, "lineage lineage_version"),
        **pick(shown, "boundary blocks"),
        **pick(call.size, "tokens tokens_basis=basis"),
        "rebuilt": shown.fingerprint,
    }


def _audited_call_to_json(session: str, call: AuditedCall, form: str | None) -> dict[str, Any]:
    return {
        "session": session,
        **call_to_json(call),
        "format": form or call.render_format,
        "as_sent": call.is_exact and form in {None, call.render_format},
        "body": call.request(form),
    }


def print_call(
    call: Invocation, session: StoredSession, audited: AuditedCall, form: str | None
) -> None:
    if call.as_json:
        print_json(_audited_call_to_json(session.key, audited, form))
    else:
        boundary = audited.view.boundary if audited.view else None
        compaction = None
        if audited.view and boundary:
            number, lineage = boundary.originator_version, audited.view.coordinate.lineage
            compaction = find_compaction_number(session, number, lineage)
        _print_request(audited, compaction, form)
    if audited.shown.is_refuted:
        raise typer.Exit(1)


def _print_request(call: AuditedCall, compaction: int | None, form: str | None) -> None:
    """Print one call, whose view began at `compaction`, and its request as JSON."""
    name = f"call {call.number}" if call.number else "the call"
    place, reported = f"#{call.last_seen_position}", call.reported
    if reported is not None:
        place = format_place(reported.lineage, reported.lineage_version, call.last_seen_position)
    elif call.view:
        place = format_coordinate(call.view.coordinate)
    size = _format_view_size(call, compaction)
    print_text(f"{name} saw {place}: {size}", bold=True)
    for line in _report_lines(call.reported, call.answer):
        print_text(line)
    print_text(_format_proof(call.shown))
    if call.view is None:
        return
    if form is None and not call.is_exact:
        print_text()
        print_view(call.view)
        return
    as_sent = f", which was sent as {call.request_format}" if call.request_format else ""
    if call.is_exact and form in {None, call.render_format}:
        as_sent = ", as it was sent"
    print_text(f"the request in the format {form or call.render_format}{as_sent}:")
    print_json(call.request(form))


def _format_proof(shown: SentView) -> str:
    return f"{shown.proof}" + (f": {shown.why}" if shown.why else "")


def _format_view_size(call: AuditedCall, compaction: int | None) -> str:
    begins = f", compaction {compaction}" if compaction else ""
    return f"{format_count(call.shown.blocks, 'block')}, {call.size}{begins}"


def print_call_summary(asked: AuditedCall, audit: Audit, *, brief: bool) -> None:
    at = format_place(asked.lineage, asked.lineage_version, asked.last_seen_position)
    compaction = audit.number_compactions(asked.lineage).get(asked.shown.boundary or 0)
    size = _format_view_size(asked, compaction)
    print_text(f"-- call {asked.number} saw {at}: {size}; {_format_proof(asked.shown)} --")
    if not brief:
        for line in _report_lines(asked.reported, asked.answer):
            print_text(INDENT + line)


def _report_lines(reported: ModelCalled | None, answer: Iterable[int]) -> Iterator[str]:
    written = " ".join(f"#{position}" for position in answer)
    if written:
        yield f"answered by {written}"
    if reported is None:
        yield "nothing was recorded of the call but its answer"
        return
    usage = reported.usage.model_dump() if reported.usage else {}
    parts = [reported.model] if reported.model else []
    parts += [f"{name} {tokens:,}" for name, tokens in usage.items() if tokens is not None]
    parts += [f"${reported.cost_usd:.4f}"] if reported.cost_usd is not None else []
    parts += [f"{reported.latency_s:.1f} s"] if reported.latency_s is not None else []
    parts += [f"ended by {reported.stop_reason}"] if reported.stop_reason else []
    parts += [f"sent as {reported.renderer}"] if reported.renderer else []
    parts.append(f"recorded at #{reported.originator_version}")
    yield ", ".join(parts)
