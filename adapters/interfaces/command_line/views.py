"""Reads and writes references to views, such as `main@3#120`, and shows views."""

from functools import partial
from typing import Any

from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import InvalidSettingError
from ....projections.history_view import HistoryView
from ....projections.rendering.catalog import RENDERERS, render_view
from ....projections.view_content import Coordinate
from ...analysis.diffs import ViewReference, read_view_reference
from ...runtime.sessions.stored_session import StoredSession
from .blocks import find_position, format_block_body, format_block_heading
from .printing import format_count, pick, print_block, print_json, print_text
from .verbs import Answer


def format_place(lineage: str, version: int | None, position: int) -> str:
    """Format a reference that `diff --from` and `--at` accept."""
    return f"{lineage}{'' if version is None else f'@{version}'}#{position}"


def format_coordinate(at: Coordinate) -> str:
    return format_place(at.lineage, at.lineage_version, at.position)


def read_place(session: StoredSession, word: str, lineage: str) -> ViewReference:
    return read_view_reference(session, word, lineage, lambda at: find_position(session, at))


def read_view_place(session: StoredSession, word: str | None, lineage: str) -> ViewReference:
    """Combine `--at` and `--lineage` into one view reference."""
    if word is None:
        return ViewReference(lineage)
    if "@" not in word and "#" not in word.strip()[1:]:
        return ViewReference(lineage, position=find_position(session, word))
    named = read_place(session, word, lineage)
    if lineage not in {MAIN_LINEAGE, named.lineage}:
        raise InvalidSettingError(f"{word!r} names a lineage: remove --lineage")
    return named


def check_format(form: str | None) -> None:
    if form is not None and form not in RENDERERS:
        raise InvalidSettingError(f"no format {form!r}; there are {', '.join(RENDERERS)}")


def answer_view(
    view: HistoryView, form: str | None, *lines: str, brief: bool = False, **known: Any
) -> Answer:
    """Answer with a view and what else is `known`; in a `form`, that is JSON in any case."""
    document = {**_view_to_json(view, form or "neutral"), **known}
    if form is not None:
        return Answer(document, partial(print_json, document))
    return Answer(document, *lines, partial(print_view, view, brief=brief))


def _view_to_json(view: HistoryView, form: str) -> dict[str, Any]:
    rendered = render_view(view, form)
    document = {
        **pick(view, "session namespace"),
        **pick(view.coordinate, "lineage at=position lineage_version"),
        **pick(view.boundary, "boundary=originator_version"),
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
    lead = "" if brief else "\n"
    if view.system_prompt is not None:
        print_block(f"{lead}system prompt", [view.system_prompt], brief=brief)
    if view.tool_definitions:
        print_text(f"{lead}{format_count(len(view.tool_definitions), 'tool')} offered")
    if summary := view.summary:
        covers = "" if brief else f", replaces {summary.covers}"
        heading = f"{lead}summary, {format_count(summary.tokens, 'token')}{covers}"
        print_block(heading, [summary.text], brief=brief)
    if not brief:
        print_text()
    for entry in view.entries:
        marked = ["pinned"] if entry.is_pinned else []
        marked += ["shortened"] if entry.shown is not None else []
        heading = format_block_heading(
            entry.position, entry.block, marked, entry.tokens, brief=brief
        )
        shown = format_block_body(entry.block) if entry.shown is None else [entry.shown]
        print_block(heading, shown, brief=brief)
