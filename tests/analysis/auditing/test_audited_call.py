"""What a call was sent is proved for ever, and what was changed since is never called proved."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opened_stores import store_of

import cutbank
from cutbank import Block, CompactionOptions, SessionStore, Settings, StoredSession, verify
from cutbank.adapters.settings.compaction_settings import PinSettings
from cutbank.domain.errors import CutbankError, InvalidPositionError, NotFoundError
from cutbank.projections.audit_entries import AuditedCall, RequestProof
from cutbank.projections.rendering.catalog import render_view

LONG = "silt and sand and clay " * 1_000
"""More than what is stored beside an event."""


def served(session: StoredSession, name: str = "c", renderer: str = "anthropic/1") -> bytes:
    """A call that the agent was served: the body that was sent."""
    view = session.view()
    session.append(Block.assistant(f"Answer {name}.", message_id=name))
    session.record_call(view, call_id=name, renderer=renderer)
    return json.dumps(render_view(view, "anthropic")).encode()


def compacted(session: StoredSession, *, activate: bool = True) -> None:
    options = CompactionOptions(settings={"keep_tokens": "500"}, activate=activate)
    session.compact("reserve-headroom", limit=100_000, options=options)


def body(call: AuditedCall) -> bytes:
    return json.dumps(call.request("anthropic")).encode()


def calls_of(session: StoredSession) -> list[AuditedCall]:
    entries = cutbank.audit(session).read_between()
    return [one for one in entries if isinstance(one, AuditedCall)]


@pytest.mark.parametrize("renderer", ["my-own/7", "anthropic/99"])
def test_a_format_that_is_not_ours_is_proved_and_not_taken_for_ours(
    session: StoredSession, renderer: str
) -> None:
    session.append(Block.user("Hi."))
    served(session, renderer=renderer)

    call = cutbank.audit_call(session, 1)

    assert call.shown.proof is RequestProof.PROVED
    assert (call.is_exact, call.render_format) == (False, "neutral")
    assert call.request_format == renderer


def test_a_call_is_the_parents_where_a_fork_inherits_it(store: SessionStore) -> None:
    """Also one that saw a version of the lineage that the fork does not share."""
    parent = store.session("parent")
    parent.append(Block.user(LONG), Block.assistant("Yes.", message_id="m"))
    parent.append(Block.user("Go on. " * 400))
    # What is prepared stands in the lineage, and changes nothing of what is served.
    compacted(parent, activate=False)
    sent = served(parent)
    fork = parent.fork("fork")
    fork.append(Block.user("And now?"), Block.assistant("Sand.", message_id="own"))

    call, own = cutbank.audit_call(fork, 2), cutbank.audit_call(fork, 3)

    assert (call.shown.proof, call.shown.why) == (RequestProof.PROVED, None)
    assert body(call) == sent
    assert call.view is not None
    assert call.view.coordinate.lineage_version > fork.view().coordinate.lineage_version
    assert own.shown.proof is RequestProof.RECONSTRUCTED
    assert own.view is not None
    assert (call.view.session, own.view.session) == ("parent", "fork")
    assert verify(store).violations == []


def test_a_coordinate_that_never_was_is_not_provable(session: StoredSession) -> None:
    session.append(Block.user("Hi."))
    view = session.view()
    elsewhere = replace(view, coordinate=replace(view.coordinate, lineage_version=7))
    session.record_call(elsewhere, call_id="c")

    call = cutbank.audit_call(session, 1)

    assert call.shown.proof is RequestProof.NOT_PROVABLE
    assert call.shown.why == "lineage 'main' has no version 7: it ends at 0"
    assert (call.view, call.request()) == (None, None)
    assert [one.rule for one in verify(store_of(session), session).violations] == ["fingerprint"]
    assert [one.shown for one in calls_of(session)] == [call.shown]


def test_what_names_no_call_is_refused(session: StoredSession) -> None:
    with pytest.raises(NotFoundError, match="tells of no call of a model"):
        cutbank.audit_call(session, 1)
    session.append(Block.user("Hi."), Block.assistant("Yes."))
    rows: list[tuple[dict[str, Any], type[CutbankError], str]] = [
        ({"number": 0}, NotFoundError, "no call 0: they go from 1 to 1"),
        ({"number": 2}, NotFoundError, "no call 2: they go from 1 to 1"),
        ({"number": -1}, NotFoundError, "no call -1: they go from 1 to 1"),
        ({"at": 3}, InvalidPositionError, "#3 is neither"),
        ({"at": 9}, InvalidPositionError, "#9 does not exist"),
        ({}, InvalidPositionError, "no call was named"),
    ]
    for how, error, said in rows:
        with pytest.raises(error, match=said):
            cutbank.audit_call(session, **how)


@pytest.mark.parametrize(
    ("table", "change", "where"),
    [
        ("stored_events", "state = replace(state, 'basalt', 'breccia')", "instr(state, 'basalt')"),
        ("bodies", "content = replace(content, 'slate', 'shale')", "instr(content, 'slate')"),
        ("stored_events", "state = replace(state, 'marble', 'gneiss')", "instr(state, 'marble')"),
        ("stored_events", "state = replace(state, 'granite', 'gravel')", "instr(state, 'granite')"),
        ("stored_events", "digest = zeroblob(16)", "instr(state, 'basalt')"),
    ],
    ids=["block", "body", "summary", "system prompt", "digest"],
)
def test_what_was_changed_behind_the_back_of_the_log_is_never_proved(
    tmp_path: Path, table: str, change: str, where: str
) -> None:
    path = tmp_path / "log.db"
    unpinned = Settings(pins=PinSettings(first_prompt=False, kinds=()))
    with cutbank.open(path, settings=unpinned) as store:
        session = store.session("s")
        session.configure(system_prompt="Be granite.")
        session.append(Block.user(f"We need marble. {LONG}"))
        session.append(Block.assistant("Yes.", message_id="m"), Block.user("Then go on. " * 250))
        compacted(session)
        session.append(Block.user("basalt"), Block.user(f"slate {LONG}"))
        sent = served(session)
        session.configure(system_prompt="Be sand.")
        assert body(cutbank.audit_call(session, 2)) == sent
        assert cutbank.audit_call(session, 2).shown.proof is RequestProof.PROVED

    tamper(path, f"UPDATE {table} SET {change} WHERE {where}")  # noqa: S608

    with cutbank.open(path) as store:
        session = store.session("s", create=False)
        call = cutbank.audit_call(session, 2)
        assert call.shown.proof is RequestProof.NOT_EQUAL
        assert call.shown.why
        before, after = calls_of(session)
        assert before.shown.proof is RequestProof.RECONSTRUCTED
        assert after.shown == call.shown
        assert verify(store, session).violations


def tamper(path: Path, change: str) -> None:
    """Change one thing in a database, as somebody with an editor would."""

    def replaced(value: bytes | str, old: str, new: str) -> bytes | str:
        """SQLite's own makes text of bytes."""
        if isinstance(value, str):
            return value.replace(old, new)
        return value.replace(old.encode(), new.encode())

    connection = sqlite3.connect(path)
    connection.create_function("replace", 3, replaced)
    connection.execute("DROP TRIGGER stored_events_are_immutable")
    assert connection.execute(change).rowcount == 1
    connection.commit()
    connection.close()
