"""Writes a session, its log, its view and its recalled blocks as JSON."""

from collections.abc import Iterable
from typing import Any

from ....domain.token_estimate import estimate_block
from ....projections.history_view import HistoryView
from ....projections.rendering.catalog import render_view
from ...runtime.sessions.recall import RecalledBlock
from ...runtime.sessions.stored_session import StoredSession
from . import block_json
from .logged_blocks import BlockLog, LoggedBlock


def session_to_json(session: StoredSession) -> dict[str, Any]:
    """Return a session for a list of sessions, read in O(1)."""
    state, parent, fork = session.log.state, session.log.parent, session.log.forked_from
    return {
        "session": session.key,
        "namespace": session.namespace,
        "title": session.log.title,
        "project": session.log.project,
        "source": session.log.source,
        "parent": parent.key if parent else None,
        "forked_from": fork.key if fork else None,
        "position": session.position,
        "turn": state.turn,
        "blocks": state.blocks,
        "tokens": state.tokens,
        "open_calls": len(state.open_calls),
        "closed": state.closed,
        "prepared": session.log.find_prepared(),
        "incomplete": session.log.incomplete_import,
        "lineages": session.log.lineages,
    }


def log_to_json(log: BlockLog, blocks: Iterable[LoggedBlock]) -> dict[str, Any]:
    """Return a session and its log, with each block's status."""
    boundary = log.view.boundary
    return {
        **session_to_json(log.session),
        "lineage": log.view.coordinate.lineage,
        "lineage_version": log.view.coordinate.lineage_version,
        "boundary": boundary.originator_version if boundary else None,
        "log": [
            {
                **_placed_to_json(one),
                "fate": one.status,
                "pending": one.pending,
                "open": one.is_open,
                "block": block_json.block_to_json(one.block),
            }
            for one in blocks
        ],
    }


def view_to_json(view: HistoryView, form: str) -> dict[str, Any]:
    """Return a view in one of its rendering formats."""
    rendered = render_view(view, form)
    document = {
        "session": view.session,
        "namespace": view.namespace,
        "lineage": view.coordinate.lineage,
        "at": view.coordinate.position,
        "lineage_version": view.coordinate.lineage_version,
        "boundary": view.boundary.originator_version if view.boundary else None,
        "inherited_from": view.inherited_from,
        "tokens": view.tokens,
        "fingerprint": view.fingerprint,
        "format": form,
    }
    if form == "neutral":
        return {**rendered, **document}
    messages = rendered.get("messages", rendered.get("input"))
    return {**document, "messages": messages, "body": rendered}


def recalled_to_json(
    session: StoredSession, blocks: Iterable[RecalledBlock], search: str | None
) -> dict[str, Any]:
    """Return originals as they were recorded."""
    return {
        "session": session.key,
        "namespace": session.namespace,
        "search": search,
        "recalled": [
            {
                **_placed_to_json(one),
                "text": one.block.text,
                "block": block_json.block_to_json(one.block),
            }
            for one in blocks
        ],
    }


def _placed_to_json(one: LoggedBlock | RecalledBlock) -> dict[str, Any]:
    return {
        "handle": f"#{one.position}",
        "position": one.position,
        "turn": one.turn,
        "kind": one.block.kind,
        "tokens": estimate_block(one.block),
    }
