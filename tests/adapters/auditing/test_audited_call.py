"""What a call was sent is proved for ever, and what was changed since is never called proved."""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from transcripts import import_file, name_of, samples

import cutbank
from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.auditing.audited_call import AuditedCall
from cutbank.adapters.analysis.replaying.recordings import recording_of
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.settings.compaction_settings import PinSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.errors import InvalidPositionError, NotFoundError
from cutbank.domain.ranges import Ranges
from cutbank.domain.settlement import Fate
from cutbank.projections.audit.audit_entries import ModelAsked
from cutbank.projections.audit.block_statuses import Became
from cutbank.projections.audit.sent_view import Proof
from cutbank.projections.rendering.catalog import render

LONG = "silt and sand and clay " * 1_000
"""More than what is stored beside an event."""


def served(session: StoredSession, name: str = "c", renderer: str = "anthropic/1") -> bytes:
    """A call that the agent was served: the body that was sent."""
    view = session.view()
    session.append(Block.assistant(f"Answer {name}.", message_id=name))
    session.record_call(view, call_id=name, renderer=renderer)
    return json.dumps(render(view, "anthropic")).encode()


def compacted(session: StoredSession) -> None:
    session.compact("reserve-headroom", settings={"keep_tokens": "500"}, limit=100_000)


def body(call: AuditedCall) -> bytes:
    return json.dumps(call.request("anthropic")).encode()


def test_a_call_stays_proved_whatever_happens_after_it(session: StoredSession) -> None:
    session.set_system_prompt("Be brief.")
    session.append(Block.user(LONG), Block.assistant("Yes.", message_id="m"), Block.user(LONG))
    sent = served(session)
    session.set_system_prompt("Be long.")
    session.append(Block.user("More."))
    compacted(session)
    session.retract(3, 5)
    session.hide(session.append(Block.user("Hide this.")).last)
    session.close()

    call = session.audited_call(2)

    assert (call.shown.proof, call.shown.why, call.is_as_sent) == (Proof.PROVED, None, True)
    assert body(call) == sent
    assert body(session.fork("branch").audited_call(2)) == sent


def test_a_rewind_that_undoes_a_summary_is_seen_by_the_calls_after_it(
    session: StoredSession,
) -> None:
    session.append(Block.user(LONG), Block.assistant("Yes.", message_id="m"))
    session.append(Block.user("Go on. " * 400))
    compacted(session)
    served(session, "a")
    back = session.retract(4)
    undone_at = session.position
    served(session, "b")
    audit = session.audit()

    asked = [one for one in audit.between() if isinstance(one, ModelAsked)]

    assert back == Ranges.of([4])
    assert [one.shown.proof for one in asked[1:]] == [Proof.PROVED, Proof.PROVED]
    assert [one.shown.boundary is None for one in asked] == [True, False, True]
    assert [one.shown for one in asked] == [session.audited_call(one.number).shown for one in asked]
    assert audit.fates.of(3) == Became(Fate.VISIBLE, since=undone_at)
    assert audit.fates.of(4) == Became(Fate.RETRACTED, since=undone_at)
    assert [era.number for era in audit.eras] == [None, asked[1].shown.boundary, None]


def test_of_two_records_of_a_call_the_last_counts_and_it_is_one_call(
    session: StoredSession,
) -> None:
    session.append(Block.user("Hi."))
    served(session)
    session.record_call(session.view(at=2), call_id="c", model="a-model")

    call = session.audited_call(1)

    assert len(session.call_index.calls()) == 1
    assert call.reported is not None
    assert call.reported.model == "a-model"
    first = session.audited_call(at=session.position - 1)
    assert first.reported is not None
    assert first.reported.model is None


def test_the_format_of_an_agents_own_is_not_taken_for_one_of_ours(session: StoredSession) -> None:
    session.append(Block.user("Hi."))
    served(session, "own", "my-own/7")
    session.append(Block.user("Hi."))
    served(session, "newer", "anthropic/99")

    own, newer = session.audited_call(1), session.audited_call(2)

    for call in (own, newer):
        assert call.shown.proof is Proof.PROVED
        assert (call.is_as_sent, call.form) == (False, "neutral")
    assert (own.sent_as, newer.sent_as) == ("my-own/7", "anthropic/99")


def test_a_call_is_the_parents_where_a_fork_inherits_it(store: SessionStore) -> None:
    """Also one that saw a version of the lineage that the fork does not share."""
    parent = store.session("parent")
    parent.append(Block.user(LONG), Block.assistant("Yes.", message_id="m"))
    parent.append(Block.user("Go on. " * 400))
    # What is prepared stands in the lineage, and changes nothing of what is served.
    policy = {"keep_tokens": "500"}
    parent.compact("reserve-headroom", settings=policy, limit=100_000, activate=False)
    sent = served(parent)
    fork = parent.fork("fork")
    fork.append(Block.user("And now?"), Block.assistant("Sand.", message_id="own"))

    call = fork.audited_call(2)

    assert (call.shown.proof, call.shown.why) == (Proof.PROVED, None)
    assert body(call) == sent
    assert call.view is not None
    assert call.view.coordinate.lineage_version > fork.view().coordinate.lineage_version
    assert call.view.session == "parent"
    own = fork.audited_call(3)
    assert own.shown.proof is Proof.RECONSTRUCTED
    assert own.view is not None
    assert own.view.session == "fork"
    assert verify(store).violations == []


def test_a_coordinate_that_never_was_is_not_provable(session: StoredSession) -> None:
    session.append(Block.user("Hi."))
    view = session.view()
    elsewhere = replace(view, coordinate=replace(view.coordinate, lineage_version=7))
    session.record_call(elsewhere, call_id="c")

    call = session.audited_call(1)

    assert call.shown.proof is Proof.NOT_PROVABLE
    assert call.shown.why == "lineage 'main' has no version 7: it ends at 0"
    assert (call.view, call.request()) == (None, None)
    (asked,) = [one for one in session.audit().between() if isinstance(one, ModelAsked)]
    assert asked.shown == call.shown


@pytest.mark.parametrize("path", samples(), ids=name_of)
def test_what_a_call_saw_is_the_view_at_its_coordinate(path: Path, tmp_path: Path) -> None:
    with cutbank.open(tmp_path / "log.db") as store:
        import_file(store, path)
        for session in store.sessions():
            for one in session.audit().between():
                if isinstance(one, ModelAsked):
                    view = session.view(
                        lineage=one.lineage,
                        at=one.placed.sees,
                        lineage_version=one.lineage_version,
                    )
                    seen = (len(view.entries), view.tokens, view.fingerprint)
                    assert seen == (one.shown.blocks, one.shown.tokens, one.shown.fingerprint)


def test_what_names_no_call_is_refused(session: StoredSession) -> None:
    with pytest.raises(NotFoundError, match="tells of no call of a model"):
        session.audited_call(1)
    session.append(Block.user("Hi."), Block.assistant("Yes."))
    for number in (0, 2, -1):
        with pytest.raises(NotFoundError, match=f"no call {number}: they go from 1 to 1"):
            session.audited_call(number)
    with pytest.raises(InvalidPositionError, match="#3 is neither"):
        session.audited_call(at=3)
    with pytest.raises(InvalidPositionError, match="#9 does not exist"):
        session.audited_call(at=9)
    with pytest.raises(InvalidPositionError, match="which call"):
        session.audited_call()


def test_calls_are_counted_as_replays_count_while_the_log_grows(session: StoredSession) -> None:
    long_id = "m" * 10_000
    steps: list[Callable[[], object]] = [
        lambda: session.append(Block.user("Hi.")),
        lambda: served(session, "a"),
        lambda: session.append(Block.assistant("One.", message_id=long_id)),
        lambda: session.append(ToolCall(tool_call_id="t", name="read", message_id=long_id)),
        lambda: session.append(ToolResult(tool_call_id="t", content="")),
        lambda: session.append(Block.assistant("No name."), Block.thinking("Nor I.")),
        lambda: session.append(Block.note("Seen by nobody.")),
        lambda: session.append(Block.assistant("Another.")),
        lambda: session.record_call(session.view(at=3), call_id="late"),
        lambda: session.record_call(session.view(), call_id="a"),
        lambda: session.append(Block.assistant("One.", message_id="a")),
    ]
    for step in steps:
        step()

        counted = [(call.sees, call.answer) for call in session.call_index.calls()]
        assert counted == [(call.sees, call.answer) for call in recording_of(session).calls]
    assert len(session.call_index.calls()) > 4


@pytest.mark.parametrize("what", ["block", "body", "summary", "system prompt", "digest"])
def test_what_was_changed_behind_the_back_of_the_log_is_never_proved(
    tmp_path: Path, what: str
) -> None:
    path = tmp_path / "log.db"
    unpinned = Settings(pins=PinSettings(first_prompt=False, kinds=()))
    with cutbank.open(path, settings=unpinned) as store:
        session = store.session("s")
        session.set_system_prompt("Be granite.")
        session.append(Block.user(f"We need marble. {LONG}"))
        session.append(Block.assistant("Yes.", message_id="m"), Block.user("Then go on. " * 250))
        compacted(session)
        session.append(Block.user("basalt"), Block.user(f"slate {LONG}"))
        served(session)
        assert session.audited_call(2).shown.proof is Proof.PROVED

    tamper(path, what)

    with cutbank.open(path) as store:
        session = store.session("s", create=False)
        call = session.audited_call(2)
        assert call.shown.proof is Proof.NOT_EQUAL
        assert call.shown.why
        asked = [one for one in session.audit().between() if isinstance(one, ModelAsked)]
        assert [one.shown.proof for one in asked] == [Proof.RECONSTRUCTED, Proof.NOT_EQUAL]
        assert asked[1].shown == call.shown
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
