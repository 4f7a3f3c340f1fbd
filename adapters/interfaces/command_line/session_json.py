"""What `--json` says of a session, its log, its view and its recalled blocks."""

from collections.abc import Iterable
from typing import Any

from ....domain.token_budget import estimate
from ....projections.history_view import HistoryView
from ....projections.rendering.catalog import render
from ...runtime.sessions.recall import Recalled
from ...runtime.sessions.stored_session import StoredSession
from . import block_json
from .logged_blocks import BlockLog, Logged


def described(session: StoredSession) -> dict[str, Any]:
    """A session in a list of sessions: all of it read in O(1)."""
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


def logged(log: BlockLog, blocks: Iterable[Logged]) -> dict[str, Any]:
    """A session and its log, each block with what became of it."""
    boundary = log.view.boundary
    return {
        **described(log.session),
        "lineage": log.view.coordinate.lineage,
        "lineage_version": log.view.coordinate.lineage_version,
        "boundary": boundary.originator_version if boundary else None,
        "log": [
            {
                **_placed(one),
                "fate": one.fate,
                "pending": one.pending,
                "open": one.is_open,
                "block": block_json.written(one.block),
            }
            for one in blocks
        ],
    }


def viewed(view: HistoryView, form: str) -> dict[str, Any]:
    """A view in one of the formats that it can be rendered in."""
    rendered = render(view, form)
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


def recalled(
    session: StoredSession, blocks: Iterable[Recalled], search: str | None
) -> dict[str, Any]:
    """Originals, as they were recorded."""
    return {
        "session": session.key,
        "namespace": session.namespace,
        "search": search,
        "recalled": [
            {**_placed(one), "text": one.block.text, "block": block_json.written(one.block)}
            for one in blocks
        ],
    }


def _placed(one: Logged | Recalled) -> dict[str, Any]:
    return {
        "handle": f"#{one.position}",
        "position": one.position,
        "turn": one.turn,
        "kind": one.block.kind,
        "tokens": estimate(one.block),
    }
