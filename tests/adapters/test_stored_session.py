"""What a session promises whoever holds it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cutbank
from cutbank import Block, HistoryView, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.compaction_outcome import Outcome
from cutbank.adapters.verifier import verify
from cutbank.domain.errors import (
    ConflictError,
    CutbankError,
    DuplicateToolCallError,
    InvalidPositionError,
    NotFoundError,
    NothingToCompactError,
    OrphanToolResultError,
    SessionClosedError,
)
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.ranges import Ranges

POLICY = ReserveHeadroom(reserve_tokens=300, keep_tokens=300)


def texts(view: HistoryView) -> list[str]:
    return [entry.text for entry in view.entries]


def call(name: str, **more: Any) -> ToolCall:
    return ToolCall(tool_call_id=name, name="read", arguments={"path": f"{name}.py"}, **more)


def result(name: str, content: str = "done") -> ToolResult:
    return ToolResult(tool_call_id=name, content=content)


def talk(session: StoredSession, turns: int = 6) -> None:
    for turn in range(turns):
        session.append(Block.user(f"question {turn} " * 60))
        session.append(Block.assistant(f"answer {turn} " * 60))


def compact(session: StoredSession, **how: Any) -> Outcome:
    return session.compact(POLICY, limit=3_000, **how)


# Appending


def test_the_same_key_stores_nothing_again(session: StoredSession) -> None:
    first = session.append(Block.user("one"), Block.user("two"), key="k")
    session.append(Block.assistant("three"))

    again = session.append(Block.user("something else"), key="k")

    assert (again.first, again.last, again.repeated) == (first.first, first.last, True)
    assert texts(session.view()) == ["one", "two", "three"]


def test_a_key_is_known_to_the_next_process(store: SessionStore, tmp_path: Path) -> None:
    first = store.session("s").append(Block.user("one"), key="k")
    store.close()

    with cutbank.open(tmp_path / "test.db") as reopened:
        again = reopened.session("s").append(Block.user("one"), key="k")

    assert (again.first, again.repeated) == (first.first, True)


def test_a_stale_expectation_is_a_conflict_and_stores_nothing(session: StoredSession) -> None:
    seen = session.position
    session.append(Block.user("one"))

    with pytest.raises(ConflictError, match=f"not #{seen}"):
        session.append(Block.user("two"), expect=seen)

    assert texts(session.view()) == ["one"]


def test_an_expectation_that_holds_is_appended(session: StoredSession) -> None:
    session.append(Block.user("one"), expect=session.position)

    session.append(Block.user("two"), expect=session.position)

    assert texts(session.view()) == ["one", "two"]


def test_an_append_without_expectation_follows_what_others_appended(
    session: StoredSession, tmp_path: Path
) -> None:
    session.append(Block.user("one"))
    with cutbank.open(tmp_path / "test.db") as other:
        other.session("a session").append(Block.user("two"))

    session.append(Block.user("three"))

    assert texts(session.view()) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("blocks", "error"),
    [
        ((Block.user("x"), result("nobody")), OrphanToolResultError),
        ((call("a"), call("a")), DuplicateToolCallError),
        ((call("a"), result("a"), result("a")), OrphanToolResultError),
    ],
)
def test_an_append_is_stored_whole_or_not_at_all(
    session: StoredSession, blocks: tuple[Any, ...], error: type[Exception]
) -> None:
    before = session.position

    with pytest.raises(error):
        session.append(*blocks)

    assert session.position == before
    assert session.state.open_calls == {}


def test_a_users_words_after_an_answer_open_a_turn(session: StoredSession) -> None:
    session.append(Block.user("one"), Block.user("and this"))
    session.append(Block.assistant("two"))
    session.append(Block.user("three"))

    assert [entry.turn for entry in session.view().entries] == [1, 1, 1, 2]


def test_a_closed_session_refuses_and_can_be_forked(session: StoredSession) -> None:
    session.append(Block.user("one"))
    session.close("done")

    with pytest.raises(SessionClosedError, match="fork it"):
        session.append(Block.user("two"))
    fork = session.fork("again")
    fork.append(Block.user("two"))

    assert texts(fork.view()) == ["one", "two"]


def test_an_unchanged_prompt_is_stored_once(session: StoredSession) -> None:
    session.set_system_prompt("Be careful.")
    session.set_tools([{"name": "read"}])
    session.set_request_settings(model="m")
    before = session.position

    session.set_system_prompt("Be careful.")
    session.set_tools([{"name": "read"}])
    session.set_request_settings(model="m")

    view = session.view()
    assert session.position == before
    assert (view.system_prompt, view.tool_definitions) == ("Be careful.", [{"name": "read"}])
    assert view.request_settings == {"model": "m"}


# Taking back


def test_a_call_takes_its_result_along(session: StoredSession) -> None:
    session.append(Block.user("go"))
    asked = session.append(call("a")).last
    session.append(Block.user("meanwhile"))
    answered = session.append(result("a")).last

    taken = session.retract(asked)

    assert taken == Ranges.of([asked, answered])
    assert texts(session.view()) == ["go", "meanwhile"]


def test_a_result_taken_back_alone_opens_its_call_again(session: StoredSession) -> None:
    asked = session.append(call("a")).last
    answered = session.append(result("a", "wrong")).last

    session.retract(answered)
    assert session.state.open_calls == {"a": asked}
    session.append(result("a", "right"))

    assert texts(session.view())[1:] == ["right"]


def test_an_old_answer_taken_back_again_leaves_the_new_one(session: StoredSession) -> None:
    session.append(call("a"))
    wrong = session.append(result("a", "wrong")).last
    session.retract(wrong)
    session.append(result("a", "right"))

    with pytest.raises(InvalidPositionError, match="no block that can be taken back"):
        session.retract(wrong)

    assert session.state.open_calls == {}


def test_rewinding_takes_back_all_that_follows(session: StoredSession) -> None:
    to = session.append(Block.user("one"), Block.assistant("two")).last
    session.append(Block.user("three"), call("a"), result("a"))

    session.rewind(to)
    session.append(Block.user("four"))

    assert texts(session.view()) == ["one", "two", "four"]
    assert [found.block.text for found in session.recall(search="three")] == ["three"]


def test_what_a_summary_stands_for_comes_back_when_part_of_it_is_taken_back(
    session: StoredSession,
) -> None:
    talk(session)
    compact(session)
    left = session.view().summary
    assert left is not None
    first = session.recall(left.covers)[0].position

    session.retract(first)

    view = session.view()
    assert view.boundary is None
    assert first not in {entry.position for entry in view.entries}
    assert len(view.entries) == 11


# Pins and hides


def test_a_pin_takes_effect_at_the_next_boundary_and_holds(session: StoredSession) -> None:
    session.append(Block.user("never touch the migrations"))
    rule = session.position
    talk(session)
    session.pin(rule)

    compact(session)
    talk(session)
    compact(session)

    view = session.view()
    assert view.entries[0].text == "never touch the migrations"
    assert view.entries[0].is_pinned


def test_a_pin_brings_back_what_left(session: StoredSession) -> None:
    session.append(Block.user("a first word"))
    word = session.position
    talk(session)
    compact(session)
    assert word not in {entry.position for entry in session.view().entries}

    session.pin(word)
    talk(session)
    compact(session)

    view = session.view()
    assert view.entries[0].position == word
    assert view.summary is not None
    assert word not in view.summary.covers


def test_a_pin_of_a_result_pins_its_call_and_message(session: StoredSession) -> None:
    said = session.append(Block.assistant("both", message_id="m"), call("a", message_id="m"))
    session.append(call("b", message_id="m"))
    session.append(result("a"))
    last = session.append(result("b")).last

    assert session.pin(last) == Ranges.span(said.first, last)


def test_an_unpinned_block_leaves_again(session: StoredSession) -> None:
    session.append(Block.user("for now"))
    at = session.position
    session.pin(at)
    talk(session)
    compact(session)

    session.unpin(at)
    talk(session)
    compact(session)

    assert at not in {entry.position for entry in session.view().entries}


def test_hidden_blocks_leave_at_the_next_boundary(session: StoredSession) -> None:
    talk(session)
    secret = session.append(Block.user("a password")).last
    asked = session.append(call("a")).last
    answer = session.append(result("a", "a key")).last
    talk(session, 1)
    session.hide(secret, answer)
    assert "a password" in texts(session.view())

    compact(session)
    shown = {entry.position: entry.text for entry in session.view().entries}

    assert secret not in shown
    if asked in shown:
        assert shown[answer] == f"[hidden; recall #{answer}]"
    assert "a key" not in shown.values()
    assert [found.block.text for found in session.recall(secret)] == ["a password"]


def test_only_blocks_can_be_pinned(session: StoredSession) -> None:
    session.append(Block.user("one"))

    with pytest.raises(InvalidPositionError, match="#1 is not a block"):
        session.pin(1)
    with pytest.raises(InvalidPositionError, match="#99"):
        session.hide(99)


# Forks


def test_a_fork_copies_nothing(store: SessionStore, session: StoredSession) -> None:
    talk(session)
    rows = _rows(store)

    fork = session.fork("other")

    assert _rows(store) == rows + 1
    assert fork.view().entries == session.view().entries
    assert fork.recall(3)[0].block == session.recall(3)[0].block


def test_a_fork_and_its_parent_go_their_own_ways(session: StoredSession) -> None:
    session.append(Block.user("one"))
    at = session.position
    session.append(Block.user("two"))

    fork = session.fork("other", at=at)
    fork.append(Block.user("three"))
    session.append(Block.user("four"))

    assert texts(fork.view()) == ["one", "three"]
    assert texts(session.view()) == ["one", "two", "four"]
    assert texts(fork.fork("third").view()) == ["one", "three"]


def test_a_fork_inherits_the_boundary_that_was_served_where_it_leaves(
    session: StoredSession,
) -> None:
    talk(session)
    before = session.position
    compact(session)
    at = session.append(Block.user("after")).last
    talk(session)
    compact(session)

    early, late = session.fork("early", at=before - 1), session.fork("late", at=at)

    assert early.view().boundary is None
    assert late.view().entries == session.view(at=at).entries
    assert late.view().inherited_from == "main of a session"
    talk(late)
    compact(late)
    assert late.view().boundary != session.view().boundary
    assert late.view().inherited_from is None


def test_a_fork_answers_the_calls_that_were_open(session: StoredSession) -> None:
    session.append(call("a"))
    at = session.position
    session.append(result("a", "here"))

    fork = session.fork("other", at=at)
    fork.append(result("a", "there"))

    assert texts(fork.view())[-1] == "there"
    assert texts(session.view())[-1] == "here"


def test_a_taken_key_is_refused(session: StoredSession) -> None:
    with pytest.raises(ConflictError, match="exists already"):
        session.fork("a session")


# Views, compaction and recall


def test_a_view_at_an_old_coordinate_is_what_was_served_there(session: StoredSession) -> None:
    talk(session)
    before = session.view()
    compact(session)
    talk(session)

    at = before.coordinate
    again = session.view(at=at.position, lineage_version=at.lineage_version)

    assert again == before
    assert again.fingerprint == before.fingerprint
    assert session.view().fingerprint != before.fingerprint


def test_a_recorded_call_is_proved_by_its_fingerprint(
    store: SessionStore, session: StoredSession
) -> None:
    talk(session)
    session.record_call(session.view(), call_id="c1", model="m")
    compact(session)
    session.record_call(session.view(), call_id="c2", model="m")

    verdict = verify(store)

    assert verdict.ok
    assert verdict.calls == 2


def test_reverting_twice_serves_the_whole_history(session: StoredSession) -> None:
    talk(session)
    whole = len(session.view().entries)
    first = compact(session).boundary
    talk(session)
    second = compact(session).boundary

    assert session.revert() == second
    assert session.view().boundary is not None
    assert session.revert() == first

    assert len(session.view().entries) == 2 * whole
    with pytest.raises(NotFoundError, match="no compaction to revert"):
        session.revert()


def test_a_shadow_lineage_leaves_main_alone(session: StoredSession) -> None:
    talk(session)
    before = session.view()

    compact(session, lineage="what-if")

    assert session.view() == before
    assert session.view(lineage="what-if").boundary is not None
    assert session.lineages == ["what-if"]


def test_a_dry_run_records_nothing(store: SessionStore, session: StoredSession) -> None:
    talk(session)
    rows = _rows(store)

    outcome = compact(session, dry_run=True)

    assert outcome.post_tokens < outcome.pre_tokens
    assert _rows(store) == rows


def test_a_small_session_is_not_compacted_and_it_is_said_why(session: StoredSession) -> None:
    session.append(Block.user("hello"))

    with pytest.raises(NothingToCompactError, match="nothing to compact"):
        session.compact()


def test_recall_finds_text_in_whatever_left(session: StoredSession) -> None:
    session.append(call("a"), result("a", "Connection REFUSED by host"))
    talk(session)
    compact(session)

    (found,) = session.recall(search="connection refused")

    assert found.block.text == "Connection REFUSED by host"


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        (lambda session: session.view(at=99), "has no position 99"),
        (lambda session: session.view(lineage="nope"), "there is: main"),
        (lambda session: session.view(lineage_version=5), "has no version 5"),
        (lambda session: session.recall(99), "ends at #1"),
        (lambda session: session.recall(), "give handles"),
        (lambda session: session.recall(0), "begin at 1"),
        (lambda session: session.append(), "at least one block"),
        (lambda session: session.compact("nope"), "there is no policy 'nope'"),
        (lambda session: session.store.session("nope", create=False), "there is: a session"),
        (lambda session: session.store.session(""), "must have characters"),
    ],
)
def test_an_error_says_what_exists(
    session: StoredSession, asks: Callable[[StoredSession], Any], says: str
) -> None:
    with pytest.raises(CutbankError, match=says):
        asks(session)


def _rows(store: SessionStore) -> int:
    reader = store.events.recorder.datastore.reader
    return int(reader.execute("SELECT count(*) FROM stored_events").fetchone()[0])
