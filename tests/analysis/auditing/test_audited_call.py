"""What a call was sent is proved for ever, and what was changed since is never called proved."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from opened_stores import store_of
from transcripts import import_file, samples

import cutbank
from cutbank import Block, CompactionOptions, SessionStore, StoredSession
from cutbank.adapters.analysis.auditing.audited_call import AuditedCall
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.settings.compaction_settings import PinSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.errors import InvalidPositionError, NotFoundError
from cutbank.projections.audit_entries import ModelCallEntry, RequestProof
from cutbank.projections.rendering.catalog import render_view

LONG = "silt and sand and clay " * 1_000
"""More than what is stored beside an event."""


def served(session: StoredSession, name: str = "c", renderer: str = "anthropic/1") -> bytes:
    """A call that the agent was served: the body that was sent."""
    view = session.view()
    session.append(Block.assistant(f"Answer {name}.", message_id=name))
    session.record_call(view, call_id=name, renderer=renderer)
    return json.dumps(render_view(view, "anthropic")).encode()


def compacted(session: StoredSession) -> None:
    session.compact(
        "reserve-headroom",
        limit=100_000,
        options=CompactionOptions(settings={"keep_tokens": "500"}),
    )


def body(call: AuditedCall) -> bytes:
    return json.dumps(call.request("anthropic")).encode()


def test_a_call_stays_proved_whatever_happens_after_it(session: StoredSession) -> None:
    session.configure(system_prompt="Be brief.")
    session.append(Block.user(LONG), Block.assistant("Yes.", message_id="m"), Block.user(LONG))
    sent = served(session)
    session.configure(system_prompt="Be long.")
    session.append(Block.user("More."))
    compacted(session)
    session.retract(3, 5)
    session.hide(session.append(Block.user("Hide this.")).last)
    session.close()

    call = cutbank.audit_call(session, 2)

    assert (call.shown.proof, call.shown.why, call.is_exact) == (RequestProof.PROVED, None, True)
    assert body(call) == sent
    assert body(cutbank.audit_call(session.fork("branch"), 2)) == sent


def test_the_format_of_an_agents_own_is_not_taken_for_one_of_ours(session: StoredSession) -> None:
    session.append(Block.user("Hi."))
    served(session, "own", "my-own/7")
    session.append(Block.user("Hi."))
    served(session, "newer", "anthropic/99")

    own, newer = cutbank.audit_call(session, 1), cutbank.audit_call(session, 2)

    for call in (own, newer):
        assert call.shown.proof is RequestProof.PROVED
        assert (call.is_exact, call.render_format) == (False, "neutral")
    assert (own.request_format, newer.request_format) == ("my-own/7", "anthropic/99")


def test_a_call_is_the_parents_where_a_fork_inherits_it(store: SessionStore) -> None:
    """Also one that saw a version of the lineage that the fork does not share."""
    parent = store.session("parent")
    parent.append(Block.user(LONG), Block.assistant("Yes.", message_id="m"))
    parent.append(Block.user("Go on. " * 400))
    # What is prepared stands in the lineage, and changes nothing of what is served.
    policy = {"keep_tokens": "500"}
    parent.compact(
        "reserve-headroom",
        limit=100_000,
        options=CompactionOptions(settings=policy, activate=False),
    )
    sent = served(parent)
    fork = parent.fork("fork")
    fork.append(Block.user("And now?"), Block.assistant("Sand.", message_id="own"))

    call = cutbank.audit_call(fork, 2)

    assert (call.shown.proof, call.shown.why) == (RequestProof.PROVED, None)
    assert body(call) == sent
    assert call.view is not None
    assert call.view.coordinate.lineage_version > fork.view().coordinate.lineage_version
    assert call.view.session == "parent"
    own = cutbank.audit_call(fork, 3)
    assert own.shown.proof is RequestProof.RECONSTRUCTED
    assert own.view is not None
    assert own.view.session == "fork"
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
    (asked,) = [
        one for one in cutbank.audit(session).read_between() if isinstance(one, ModelCallEntry)
    ]
    assert asked.sent_view == call.shown


def test_what_a_call_saw_is_the_view_at_its_coordinate(tmp_path: Path) -> None:
    with cutbank.open(tmp_path / "log.db") as store:
        for number, path in enumerate(samples()):
            import_file(store, path, namespace=str(number))
        for session in store.sessions():
            for one in cutbank.audit(session).read_between():
                if isinstance(one, ModelCallEntry):
                    view = session.view(
                        lineage=one.lineage,
                        at=one.numbered_call.last_seen_position,
                        lineage_version=one.lineage_version,
                    )
                    seen = (len(view.entries), view.tokens, view.fingerprint)
                    shown = (one.sent_view.blocks, one.sent_view.tokens, one.sent_view.fingerprint)
                    assert seen == shown, session


def test_what_names_no_call_is_refused(session: StoredSession) -> None:
    with pytest.raises(NotFoundError, match="tells of no call of a model"):
        cutbank.audit_call(session, 1)
    session.append(Block.user("Hi."), Block.assistant("Yes."))
    for number in (0, 2, -1):
        with pytest.raises(NotFoundError, match=f"no call {number}: they go from 1 to 1"):
            cutbank.audit_call(session, number)
    with pytest.raises(InvalidPositionError, match="#3 is neither"):
        cutbank.audit_call(session, at=3)
    with pytest.raises(InvalidPositionError, match="#9 does not exist"):
        cutbank.audit_call(session, at=9)
    with pytest.raises(InvalidPositionError, match="no call was named"):
        cutbank.audit_call(session)


@pytest.mark.parametrize("what", ["block", "body", "summary", "system prompt", "digest"])
def test_what_was_changed_behind_the_back_of_the_log_is_never_proved(
    tmp_path: Path, what: str
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
        served(session)
        assert cutbank.audit_call(session, 2).shown.proof is RequestProof.PROVED

    tamper(path, what)

    with cutbank.open(path) as store:
        session = store.session("s", create=False)
        call = cutbank.audit_call(session, 2)
        assert call.shown.proof is RequestProof.NOT_EQUAL
        assert call.shown.why
        asked = [
            one for one in cutbank.audit(session).read_between() if isinstance(one, ModelCallEntry)
        ]
        assert [one.sent_view.proof for one in asked] == [
            RequestProof.RECONSTRUCTED,
            RequestProof.NOT_EQUAL,
        ]
        assert asked[1].sent_view == call.shown
        assert verify(store, session).violations


def tamper(path: Path, what: str) -> None:
    """Change one thing in a database, as somebody with an editor would."""
    changes = {
        "block": "UPDATE stored_events SET state = replace(state, 'basalt', 'breccia')"
        " WHERE instr(state, 'basalt')",
        "body": "UPDATE bodies SET content = replace(content, 'slate', 'shale')"
        " WHERE instr(content, 'slate')",
        "summary": "UPDATE stored_events SET state = replace(state, 'marble', 'gneiss')"
        " WHERE topic = (SELECT id FROM topics WHERE topic = 'cutbank:Summary')",
        "system prompt": "UPDATE stored_events SET state = replace(state, 'granite', 'gravel')"
        " WHERE instr(state, 'granite')",
        "digest": "UPDATE stored_events SET digest = zeroblob(16) WHERE instr(state, 'basalt')",
    }
    connection = sqlite3.connect(path)
    connection.create_function("replace", 3, replaced_in)
    connection.execute("DROP TRIGGER stored_events_are_immutable")
    connection.execute(changes[what])
    assert connection.execute("SELECT changes()").fetchone() == (1,)
    connection.commit()
    connection.close()


def replaced_in(value: bytes | str, old: str, new: str) -> bytes | str:
    """SQLite's own makes text of bytes."""
    if isinstance(value, str):
        return value.replace(old, new)
    return value.replace(old.encode(), new.encode())
