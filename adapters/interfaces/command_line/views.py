"""Reads and writes references to views, such as `main@3#120`, and shows views."""

from typing import Any

from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import InvalidSettingError
from ....projections.history_view import HistoryView
from ....projections.rendering.catalog import RENDERERS, render_view
from ....projections.view_content import Coordinate, ViewEntry
from ...analysis.auditing.diffs import ViewReference, read_view_reference
from ...runtime.sessions.stored_session import StoredSession
from .blocks import find_position, format_block_body, format_block_heading
from .printing import format_count, pick, print_block, print_brief, print_text


def format_place(lineage: str, version: int | None, position: int) -> str:
    """Format a reference that `diff --from` and `--at` accept."""
    return f"{lineage}{'' if version is None else f'@{version}'}#{position}"


def format_coordinate(at: Coordinate) -> str:
    return format_place(at.lineage, at.lineage_version, at.position)


def read_place(session: StoredSession, word: str, lineage: str) -> ViewReference:
    return read_view_reference(session, word, lineage, lambda at: find_position(session, at))


def read_view_place(
    session: StoredSession, word: str | None, lineage: str, version: int | None
) -> ViewReference:
    """Combine `--at`, `--lineage` and `--lineage-version` into one view reference."""
    if word is None:
        return ViewReference(lineage, version)
    if "@" not in word and "#" not in word.strip()[1:]:
        return ViewReference(lineage, version, find_position(session, word))
    named = read_place(session, word, lineage)
    if named.version is not None and version is not None:
        raise InvalidSettingError(f"{word!r} names a version: remove --lineage-version")
    if lineage not in {MAIN_LINEAGE, named.lineage}:
        raise InvalidSettingError(f"{word!r} names a lineage: remove --lineage")
    return ViewReference(
        named.lineage, version if named.version is None else named.version, named.position
    )


def check_format(form: str | None) -> None:
    if form is not None and form not in RENDERERS:
        raise InvalidSettingError(f"no format {form!r}; there are {', '.join(RENDERERS)}")


def view_to_json(view: HistoryView, form: str) -> dict[str, Any]:
    rendered = render_view(view, form)
    document = {
        **pick(view, "session namespace"),
        "lineage": view.coordinate.lineage,
        "at": view.coordinate.position,
        "lineage_version": view.coordinate.lineage_version,
        "boundary": view.boundary.originator_version if view.boundary else None,
        **pick(view, "inherited_from tokens fingerprint"),
        "format": form,
    }
    if form == "neutral":
        return {**rendered, **document}
    messages = rendered.get("messages", rendered.get("input"))
    return {**document, "messages": messages, "body": rendered}


def print_view(view: HistoryView, *, brief: bool = False) -> None:
    print_text(
        f"{view.session}: {format_count(view.tokens, 'token')} estimated,"
        f" {format_count(len(view.entries), 'block')},"
        f" as of {format_coordinate(view.coordinate)}"
    )
    print_text(f"fingerprint {view.fingerprint}")
    if view.inherited_from:
        print_text(f"its boundary was inherited from {view.inherited_from}")
    show = print_brief if brief else _print_paragraph
    if view.system_prompt is not None:
        show("system prompt", view.system_prompt)
    if view.tool_definitions:
        tools = f"{format_count(len(view.tool_definitions), 'tool')} offered"
        if brief:
            print_text(tools)
        else:
            print_text(f"\n{tools}", bold=True)
    if summary := view.summary:
        covers = "" if brief else f", replaces {summary.covers}"
        show(f"summary, {format_count(summary.tokens, 'token')}{covers}", summary.text)
    if not brief:
        print_text()
    for entry in view.entries:
        heading = _format_heading(entry, brief=brief)
        if brief:
            print_brief(heading, entry.text)
        else:
            shown = format_block_body(entry.block) if entry.shown is None else [entry.shown]
            print_block(heading, shown)


def _print_paragraph(top: str, text: str) -> None:
    print_block(f"\n{top}", [text])


def _format_heading(entry: ViewEntry, *, brief: bool = False) -> str:
    marked = ["pinned"] if entry.is_pinned else []
    marked += ["shortened"] if entry.shown is not None else []
    return format_block_heading(entry.position, entry.block, marked, entry.tokens, brief=brief)
