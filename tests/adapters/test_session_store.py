"""What callers of a stored session may rely on: appends, forks, retractions, pins and views."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from databases import asked

import cutbank
from cutbank import Block, HistoryView, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.compacting.outcome import Outcome
from cutbank.adapters.event_log.chain import Chain
from cutbank.adapters.stored_session import Appended
from cutbank.adapters.verifier import verify
from cutbank.domain.errors import (
    ConflictError,
    CutbankError,
    DuplicateToolCallError,
    InvalidPositionError,
    InvalidSettingError,
    NotFoundError,
    OrphanToolResultError,
    SessionClosedError,
    StalePlanError,
)
from cutbank.domain.ranges import Ranges
from cutbank.domain.window import Plan, Window


@dataclass(frozen=True)
class CutAt:
    """A policy that cuts where the test says."""

    name: ClassVar[str] = "cut-at"

    cut: int

    def plan(self, _: Window) -> Plan | None:
        return Plan(cut=self.cut, reason="the test wants it", summary_tokens=500)


def said(text: str) -> Block:
    """A user's words, so many that a summary of them is shorter."""
    return Block.user(f"{text} " * 200)


def call(name: str) -> ToolCall:
    return ToolCall(tool_call_id=name, name="read", arguments={"path": f"{name}.py"})


def result(name: str, content: str = "done") -> ToolResult:
    return ToolResult(tool_call_id=name, content=content)


def words(view: HistoryView) -> list[str]:
    """The first words of every block that a view shows."""
    return [entry.text.split(maxsplit=1)[0] for entry in view.entries]


def positions(view: HistoryView) -> list[int]:
    return [entry.position for entry in view.entries]


def number_of_rows(store: SessionStore) -> dict[str, int]:
    return {
        table: asked(store, f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608
        for table in ("stored_events", "bodies", "append_keys", "streams")
    }


def compacted(session: StoredSession, cut: int, **more: Any) -> Outcome:
    outcome = session.compact(CutAt(cut), **more)
    assert outcome.compacted
    return outcome


@pytest.fixture
def five(session: StoredSession) -> list[int]:
    """Five questions in the session; their positions."""
    return [session.append(said(f"q{number}")).last for number in range(5)]


# Append identity


def test_a_repeated_key_gets_the_first_result(
    store: SessionStore, session: StoredSession, database: str
) -> None:
    first = session.append(Block.user("a"), Block.user("b"), key="the key")
    session.append(Block.user("c"))
    rows = number_of_rows(store)

    again = session.append(Block.user("something else"), key="the key")

    assert again == Appended(first.first, first.last, repeated=True)
    assert number_of_rows(store) == rows
    with cutbank.open(database) as reopened:
        same = reopened.session("a session").append(Block.user("x"), key="the key")
        assert same == again
        assert words(reopened.session("a session").view()) == ["a", "b", "c"]


def test_a_key_names_an_append_of_its_own_session_only(
    store: SessionStore, session: StoredSession
) -> None:
    session.append(Block.user("a"), key="the key")

    other = store.session("another").append(Block.user("b"), key="the key")
    fork = session.fork("fork").append(Block.user("c"), key="the key")

    assert not other.repeated
    assert not fork.repeated


def test_a_repeated_key_is_answered_even_where_the_append_would_be_refused(
    session: StoredSession,
) -> None:
    session.append(call("c1"))
    first = session.append(result("c1"), key="answer", expect=session.position)
    session.close()

    again = session.append(result("c1"), key="answer", expect=1)

    assert again == Appended(first.first, first.last, repeated=True)


def test_a_key_whose_append_was_refused_is_still_free(session: StoredSession) -> None:
    with pytest.raises(OrphanToolResultError):
        session.append(Block.user("a"), result("nobody"), key="the key")

    done = session.append(Block.user("b"), key="the key")

    assert not done.repeated
    assert words(session.view()) == ["b"]


def test_a_stale_expectation_is_a_conflict_and_stores_nothing(
    store: SessionStore, session: StoredSession, database: str
) -> None:
    seen = session.append(Block.user("a")).last
    with cutbank.open(database) as another:
        another.session("a session").append(Block.user("b"))
    rows = number_of_rows(store)

    with pytest.raises(ConflictError, match=f"is at #{seen + 1}, not #{seen}: read it again"):
        session.append(Block.user("c"), expect=seen)

    assert number_of_rows(store) == rows
    session.append(Block.user("c"), expect=seen + 1)
    with pytest.raises(ConflictError):
        session.append(Block.user("d"), expect=seen + 100)
    assert words(session.view()) == ["a", "b", "c"]


def test_an_expectation_that_is_news_to_this_process_is_met(
    session: StoredSession, database: str
) -> None:
    session.append(Block.user("a"))
    with cutbank.open(database) as another:
        newest = another.session("a session").append(Block.user("b")).last

    done = session.append(Block.user("c"), expect=newest)

    assert done.first == newest + 1


@pytest.mark.parametrize(
    ("blocks", "error"),
    [
        ([Block.user("a"), result("nobody")], OrphanToolResultError),
        ([call("c1"), result("c1"), result("c1")], OrphanToolResultError),
        ([call("c1"), call("c1")], DuplicateToolCallError),
        ([Block.user("a"), call("open")], DuplicateToolCallError),
        ([], InvalidPositionError),
    ],
)
def test_an_append_is_stored_whole_or_not_at_all(
    store: SessionStore, session: StoredSession, blocks: list[Any], error: type[Exception]
) -> None:
    session.append(call("open"))
    before, rows = session.state, number_of_rows(store)

    with pytest.raises(error):
        session.append(*blocks)

    assert number_of_rows(store) == rows
    assert session.state == before
    assert session.append(Block.user("next")).last == session.position
    assert verify(store).ok


def test_a_result_answers_its_call_wherever_it_stands(session: StoredSession) -> None:
    session.append(call("c1"), call("c2"), Block.assistant("meanwhile"))

    session.append(result("c2"), result("c1"))

    assert session.state.open_calls == {}
    assert [entry.call for entry in session.view().entries] == [None, None, None, 3, 2]


def test_an_abandoned_call_is_closed(session: StoredSession) -> None:
    session.append(call("c1"), call("c2"))

    session.abandon("c1", "the user pressed escape")

    with pytest.raises(OrphanToolResultError, match=r"no open tool call 'c1'.*\(open: 'c2'\)"):
        session.append(result("c1"))
    assert session.view().entries[-1].text == "[abandoned: the user pressed escape]"


def test_the_same_request_is_not_stored_twice(session: StoredSession) -> None:
    for _ in range(2):
        session.set_system_prompt("Be kind.")
        session.set_tools([{"name": "read"}])
        session.set_request_settings(model="m", temperature=0.5)
    before = session.position

    session.set_system_prompt("Be brief.")

    assert before == 4
    view = session.view()
    assert view.system_prompt == "Be brief."
    assert view.tool_definitions == [{"name": "read"}]
    assert view.request_settings == {"model": "m", "temperature": 0.5}
    assert session.view(at=before).system_prompt == "Be kind."


def test_sessions_are_told_apart_by_namespace_and_key(store: SessionStore) -> None:
    names = [("a", "b:c"), ("a:b", "c"), ("", "x"), ("1", "a"), ("1:a", "")]
    good = [name for name in names if all(name)]
    for namespace, key in good:
        store.session(key, namespace=namespace).append(Block.user(f"{namespace}/{key}"))

    for namespace, key in good:
        assert words(store.session(key, namespace=namespace).view()) == [f"{namespace}/{key}"]
    assert [(s.namespace, s.key) for s in store.sessions()] == sorted(good)
    assert [s.key for s in store.sessions("a")] == ["b:c"]
    for namespace, key in set(names) - set(good):
        with pytest.raises(InvalidPositionError, match="must have characters"):
            store.session(key, namespace=namespace)


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda s, n: s.store.session(n), id="key"),
        pytest.param(lambda s, n: s.store.session("x", namespace=n), id="namespace"),
        pytest.param(lambda s, n: s.store.session("x", subject=n), id="subject"),
        pytest.param(lambda s, n: s.fork(n), id="fork"),
        pytest.param(lambda s, n: s.append(Block.user("a"), key=n), id="append key"),
        pytest.param(lambda s, n: s.compact(CutAt(5), lineage=n), id="lineage"),
        pytest.param(lambda s, n: s.compact(CutAt(5), idempotency_key=n), id="idempotency key"),
    ],
)
@pytest.mark.usefixtures("five")
def test_a_name_that_cannot_be_stored_is_refused(
    session: StoredSession, use: Callable[[StoredSession, str], Any]
) -> None:
    before = session.position

    with pytest.raises(CutbankError, match=r"not valid Unicode|cannot name a lineage"):
        use(session, "half a character \ud800")

    assert session.position == before
    assert session.view().boundary is None


# Forks


def test_a_fork_copies_nothing(store: SessionStore, session: StoredSession) -> None:
    session.append(said("a"), Block.assistant("large " * 5_000), key="k")
    before = number_of_rows(store)

    fork = session.fork("fork")

    after = number_of_rows(store)
    assert after["stored_events"] == before["stored_events"] + 1
    assert after["streams"] == before["streams"] + 1
    assert (after["bodies"], after["append_keys"]) == (before["bodies"], before["append_keys"])
    assert fork.view().entries == session.view().entries


def test_a_fork_s_handles_name_its_parent_s_blocks_and_then_its_own(
    session: StoredSession, five: list[int]
) -> None:
    fork = session.fork("fork", at=five[2])
    own = fork.append(Block.user("own")).last

    assert fork.position == own
    assert own > five[2] + 1
    assert [block.block.text.split()[0] for block in fork.recall(*five[:3], own)] == [
        "q0",
        "q1",
        "q2",
        "own",
    ]
    # What its parent said later is not the fork's, though its position is a number as well.
    with pytest.raises(InvalidPositionError, match="is not a block"):
        fork.recall(five[2] + 1)
    assert fork.recall(search="q3") == []
    session.append(Block.user("later"))
    assert words(fork.view()) == ["q0", "q1", "q2", "own"]
    assert words(session.view())[-1] == "later"


def test_a_fork_of_a_fork_shares_with_both(session: StoredSession, five: list[int]) -> None:
    child = session.fork("child", at=five[3])
    own = child.append(said("child")).last
    late = child.append(said("late")).last

    grandchild = child.fork("grandchild", at=own)
    early = child.fork("early", at=five[1])
    grandchild.append(said("grandchild"))
    early.append(said("early"))

    assert words(grandchild.view()) == ["q0", "q1", "q2", "q3", "child", "grandchild"]
    assert words(early.view()) == ["q0", "q1", "early"]
    assert late not in positions(grandchild.view())
    assert verify(session.store).ok


def test_a_fork_inherits_the_boundary_that_was_in_effect_where_it_left(
    session: StoredSession, five: list[int]
) -> None:
    first = compacted(session, five[2])
    session.append(said("q5"))
    after_first = session.position
    session.append(said("q6"))
    second = compacted(session, five[4])
    session.append(said("q7"))

    before, between, newest = (
        session.fork(name, at=at)
        for name, at in (("before", five[3]), ("between", after_first), ("newest", None))
    )

    assert before.view().boundary is None
    assert between.view().boundary is not None
    assert between.view().boundary.originator_version == first.boundary  # type: ignore[union-attr]
    assert newest.view().boundary.originator_version == second.boundary  # type: ignore[union-attr]
    for fork, at in ((before, five[3]), (between, after_first), (newest, session.position)):
        assert fork.view().entries == session.view(at=at).entries
        assert fork.view().summary == session.view(at=at).summary
        assert fork.lineages == []


def test_a_fork_s_compactions_are_its_own(session: StoredSession, five: list[int]) -> None:
    compacted(session, five[2])
    fork = session.fork("fork")
    served = fork.view()
    assert served.inherited_from == "main of a session"

    session.append(said("q5"))
    compacted(session, five[4])
    assert fork.view() == served

    own = fork.append(said("own")).last
    compacted(fork, own)

    assert fork.view().inherited_from is None
    assert words(fork.view()) == ["own"]
    assert words(session.view()) == ["q4", "q5"]
    assert fork.revert()
    assert fork.view().boundary == served.boundary
    assert words(fork.view()) == ["q2", "q3", "q4", "own"]
    assert verify(session.store).ok


def test_a_fork_answers_calls_that_were_open_where_it_left(session: StoredSession) -> None:
    at = session.append(call("c1"), call("c2")).last
    session.append(result("c1"))

    fork = session.fork("fork", at=at)
    fork.append(result("c1", "the fork's"), result("c2", "both"))

    assert fork.state.open_calls == {}
    assert session.state.open_calls.keys() == {"c2"}
    assert [entry.text for entry in fork.view().entries[-2:]] == ["the fork's", "both"]


def test_what_a_fork_takes_back_stays_in_its_parent(
    session: StoredSession, five: list[int]
) -> None:
    session.retract(five[0])
    fork = session.fork("fork")

    fork.retract(five[4])

    assert words(fork.view()) == ["q1", "q2", "q3"]
    assert words(session.view()) == ["q1", "q2", "q3", "q4"]
    assert fork.recall(five[0])[0].block.text.startswith("q0")


def test_a_fork_is_refused_where_it_cannot_be(session: StoredSession, five: list[int]) -> None:
    session.fork("taken")

    with pytest.raises(ConflictError, match="session 'taken' exists already"):
        session.fork("taken")
    with pytest.raises(InvalidPositionError, match=f"ends at #{five[-1]}"):
        session.fork("new", at=five[-1] + 1)
    with pytest.raises(CutbankError):
        session.fork("new", at=0)
    with pytest.raises(NotFoundError, match=r"no session 'new'.*there is: a session, taken"):
        session.store.session("new", create=False)


def test_a_chain_says_which_stream_holds_a_position() -> None:
    one, two, three = uuid4(), uuid4(), uuid4()
    chain = Chain.beginning(one).continued_by(two, 5).continued_by(three, 7)

    assert [chain.holding(at) for at in (1, 5, 6, 7, 8, 100)] == [one, one, two, two, three, three]
    assert list(chain.split(Ranges([(2, 3), (5, 6), (8, 9)]))) == [
        (one, ((2, 3), (5, 5))),
        (two, ((6, 6),)),
        (three, ((8, 9),)),
    ]
    assert list(chain.up_to(6).split(Ranges.span(1, 50))) == [(one, ((1, 5),)), (two, ((6, 6),))]
    assert list(chain.up_to(5).split(Ranges.span(6, 50))) == []
    # What leaves before the last one begins shares nothing with it.
    assert Chain.beginning(one).continued_by(two, 5).continued_by(three, 3).holding(4) == three
    with pytest.raises(ValueError, match="begin at 1, not 0"):
        chain.holding(0)


# Taking back


def test_what_is_taken_back_leaves_at_once_and_stays_in_the_log(
    session: StoredSession, five: list[int]
) -> None:
    before = session.view()

    gone = session.retract(five[1], five[3], reason="not meant")

    assert gone == Ranges.of([five[1], five[3]])
    assert words(session.view()) == ["q0", "q2", "q4"]
    assert session.view(at=before.coordinate.position) == before
    assert session.recall(five[1])[0].block == before.entries[1].block


def test_a_call_takes_its_result_along(session: StoredSession) -> None:
    first = session.append(call("c1"), call("c2")).first
    session.append(*(Block.note("meanwhile") for _ in range(700)))
    answers = session.append(result("c2"), result("c1"))

    gone = session.retract(first)

    assert gone == Ranges.of([first, answers.last])
    assert [entry.block.kind for entry in session.view().entries] == ["tool_call", "tool_result"]
    with pytest.raises(OrphanToolResultError):
        session.append(result("c1"))


def test_a_result_alone_opens_its_call_again(session: StoredSession) -> None:
    at = session.append(call("c1")).last
    answer = session.append(result("c1", "wrong")).last

    gone = session.retract(answer)

    assert gone == Ranges.of([answer])
    assert session.state.open_calls == {"c1": at}
    with pytest.raises(DuplicateToolCallError, match=f"already open at #{at}"):
        session.append(call("c1"))
    again = session.append(result("c1", "right")).last
    assert [entry.text for entry in session.view().entries] == ['{"path": "c1.py"}', "right"]
    # And once more, of a call whose first answer was taken back.
    assert session.retract(at) == Ranges.of([at, again])
    assert words(session.view()) == []
    assert verify(session.store).ok


def test_an_open_call_that_is_taken_back_waits_no_more(session: StoredSession) -> None:
    at = session.append(call("c1")).last

    session.retract(at)

    assert session.state.open_calls == {}
    assert session.append(call("c1"), result("c1")).last == session.position


def test_an_abandoned_call_can_be_answered_once_that_is_taken_back(
    session: StoredSession,
) -> None:
    session.append(call("c1"))
    session.abandon("c1", "too soon")

    session.retract(session.position)
    session.append(result("c1", "after all"))

    assert [entry.text for entry in session.view().entries][1:] == ["after all"]


def test_a_result_goes_with_its_call_where_the_id_was_used_again(session: StoredSession) -> None:
    """Two open calls of one id could not be told apart."""
    first = session.append(call("c1")).last
    answer = session.append(result("c1")).last
    second = session.append(call("c1")).last

    gone = session.retract(answer)

    assert gone == Ranges.of([first, answer])
    assert session.state.open_calls == {"c1": second}
    session.append(result("c1", "of the second"))
    assert session.view().entries[-1].call == second
    assert verify(session.store).ok


def test_two_results_of_one_id_are_taken_back_together(session: StoredSession) -> None:
    ids = [session.append(call("c1"), result("c1", f"{n}")) for n in range(2)]

    gone = session.retract(ids[0].last, ids[1].last)

    # One call is open again; the other could not be told from it.
    assert len(session.state.open_calls) == 1
    (open_at,) = session.state.open_calls.values()
    assert gone == Ranges.of({ids[0].first, ids[0].last, ids[1].first, ids[1].last} - {open_at})
    assert positions(session.view()) == [open_at]
    session.append(result("c1", "again"))
    assert verify(session.store).ok


def test_rewinding_takes_back_all_that_follows(session: StoredSession, five: list[int]) -> None:
    session.pin(five[4])
    session.append(call("c1"))

    gone = session.rewind(five[2])

    assert five[3] in gone
    assert words(session.view()) == ["q0", "q1", "q2"]
    assert session.state.open_calls == {}
    session.append(said("on"))
    assert words(session.view()) == ["q0", "q1", "q2", "on"]


def test_only_blocks_that_are_there_can_be_taken_back(
    session: StoredSession, five: list[int]
) -> None:
    session.retract(five[0])

    for wanted, message in (
        ([five[0]], "holds no block that can be taken back"),
        ([1], "holds no block that can be taken back"),
        ([session.position + 1], f"ends at #{session.position}"),
        ([0], "positions begin at 1, not 0"),
        ([Ranges()], "no positions were given"),
        ([], "no positions were given"),
    ):
        with pytest.raises(InvalidPositionError, match=message):
            session.retract(*wanted)


def test_taking_back_what_a_summary_stands_for_brings_back_the_boundary_before(
    session: StoredSession, five: list[int]
) -> None:
    first = compacted(session, five[1])
    session.append(said("q5"))
    compacted(session, five[4])
    assert words(session.view()) == ["q4", "q5"]

    session.retract(five[2])

    view = session.view()
    assert view.boundary is not None
    assert view.boundary.originator_version == first.boundary
    assert words(view) == ["q1", "q3", "q4", "q5"]

    session.retract(five[0])

    assert session.view().boundary is None
    assert words(session.view()) == ["q1", "q3", "q4", "q5"]
    assert verify(session.store).ok


# Pins and hides


def test_pins_and_hides_take_effect_at_the_next_boundary(
    session: StoredSession, five: list[int]
) -> None:
    before = session.view().entries
    session.pin(five[0])
    session.hide(five[3])
    session.hide(five[4], replacement="not for you")
    assert session.view().entries == before

    compacted(session, five[2])

    view = session.view()
    assert [entry.text.split()[0] for entry in view.entries] == ["q0", "q2", "not"]
    assert view.entries[0].is_pinned
    assert view.entries[0].text == before[0].text
    assert view.entries[-1].block == before[-1].block


def test_pins_and_hides_are_carried_from_boundary_to_boundary(
    session: StoredSession, five: list[int]
) -> None:
    session.pin(five[0])
    session.hide(five[4], replacement="not for you")
    compacted(session, five[2])
    for number in range(5, 8):
        newest = session.append(said(f"q{number}")).last
        compacted(session, newest)
        kept = words(session.view())
        assert kept[0] == "q0"
        assert kept[-1] == f"q{number}"
        assert "q4" not in kept

    session.unpin(five[0])
    newest = session.append(said("q8")).last
    assert words(session.view())[0] == "q0"
    compacted(session, newest)

    assert words(session.view()) == ["q8"]
    assert verify(session.store).ok


def test_pinning_what_was_summarised_brings_it_back_at_the_next_boundary(
    session: StoredSession, five: list[int]
) -> None:
    compacted(session, five[3])
    session.pin(five[1])
    assert words(session.view()) == ["q3", "q4"]

    newest = session.append(said("q5")).last
    compacted(session, newest)

    view = session.view()
    assert words(view) == ["q1", "q5"]
    assert view.summary is not None
    assert five[1] not in view.summary.covers
    assert {five[0], five[2], five[3], five[4]} <= set(view.summary.covers)
    assert verify(session.store).ok


def test_a_pin_takes_the_whole_message_and_its_results(session: StoredSession) -> None:
    session.append(said("q0"))
    asked = session.append(
        Block.thinking("hm", message_id="m1"),
        Block.assistant("I look", message_id="m1"),
        call("c1").model_copy(update={"message_id": "m1"}),
        call("c2").model_copy(update={"message_id": "m1"}),
    )
    answers = session.append(result("c2"), result("c1"))
    newest = session.append(said("q1")).last

    pinned = session.pin(answers.first)

    assert pinned == Ranges.span(asked.first, answers.last)
    compacted(session, newest)
    assert positions(session.view()) == [*pinned, newest]


def test_only_blocks_that_are_there_are_pinned_or_hidden(
    session: StoredSession, five: list[int]
) -> None:
    session.retract(five[0])
    for act in (session.pin, session.unpin, session.hide):
        with pytest.raises(InvalidPositionError, match=f"#{five[0]} was retracted"):
            act(five[0])
        with pytest.raises(InvalidPositionError, match="#1 is not a block"):
            act(1)
        with pytest.raises(InvalidPositionError, match="#999"):
            act(999)


# Recall


def test_recall_gives_back_what_left_the_view(session: StoredSession, five: list[int]) -> None:
    original = {entry.position: entry.block for entry in session.view().entries}
    session.hide(five[3])
    session.retract(five[4])
    compacted(session, five[2])

    recalled = session.recall(Ranges.span(five[0], five[4]))

    assert {block.position: block.block for block in recalled} == original
    assert [block.handle for block in recalled] == [f"#{at}" for at in five]
    assert session.recall(five[0], five[4])[1].block == original[five[4]]


def test_recall_searches_words_and_names(session: StoredSession) -> None:
    session.append(Block.user("Straße nach Köln"), call("c1"), Block.note("a note of roads"))
    session.append(result("c1", "ROADS everywhere"))

    def found(text: str, *where: int | Ranges) -> list[int]:
        return [block.position for block in session.recall(*where, search=text)]

    first = session.view().entries[0].position
    assert found("STRASSE") == [first]
    assert found("roads") == [first + 2, first + 3]
    assert found("roads", Ranges.span(1, first + 2)) == [first + 2]
    assert found("read") == [first + 1]  # a tool's name
    assert found("nowhere") == []


def test_recall_reads_long_ranges_and_skips_what_is_no_block(session: StoredSession) -> None:
    session.append(*(Block.note(f"note {number}") for number in range(1_200)))
    session.end_turn()
    session.append(Block.user("last"))

    recalled = session.recall(Ranges.span(1, session.position))

    assert len(recalled) == 1_201
    assert recalled[1_199].block.text == "note 1199"
    assert [b.position for b in recalled] == sorted(b.position for b in recalled)


def test_recall_says_what_does_not_exist(session: StoredSession, five: list[int]) -> None:
    with pytest.raises(InvalidPositionError, match=f"#999 does not exist.*ends at #{five[-1]}"):
        session.recall(999)
    with pytest.raises(InvalidPositionError, match="#1 is not a block"):
        session.recall(1, five[0])
    with pytest.raises(InvalidPositionError, match="give handles, or text to search"):
        session.recall()


def test_an_abandoned_call_s_answer_can_be_recalled(session: StoredSession) -> None:
    session.append(call("c1"))
    session.abandon("c1", "too slow")

    (block,) = session.recall(session.position)

    assert block.block == ToolResult(tool_call_id="c1", content="too slow", is_error=True)


# Boundaries, and views of the past


def test_reverting_twice_serves_what_was_served_before(
    session: StoredSession, five: list[int]
) -> None:
    whole = session.view().entries
    first = compacted(session, five[1])
    served = session.view().entries
    second = compacted(session, five[3])

    assert session.revert() == second.boundary
    assert session.view().entries == served
    assert session.revert() == first.boundary
    assert session.view().entries == whole
    assert session.view().summary is None
    with pytest.raises(NotFoundError, match="no compaction to revert"):
        session.revert()
    third = compacted(session, five[2])
    assert third.boundary is not None
    assert words(session.view()) == ["q2", "q3", "q4"]
    assert session.revert() == third.boundary
    assert session.view().entries == whole
    assert verify(session.store).ok


def test_a_prepared_boundary_is_served_once_it_is_activated(
    session: StoredSession, five: list[int]
) -> None:
    before = session.view()
    prepared = session.compact(CutAt(five[3]), activate=False)
    assert session.view().entries == before.entries
    session.append(said("meanwhile"))

    assert session.activate() == prepared.boundary

    assert words(session.view()) == ["q3", "q4", "meanwhile"]
    with pytest.raises(StalePlanError, match="not the prepared one"):
        session.activate()


def test_a_dry_run_records_nothing(
    store: SessionStore, session: StoredSession, five: list[int]
) -> None:
    before = number_of_rows(store)

    outcome = session.compact(CutAt(five[3]), dry_run=True)

    assert not outcome.compacted
    assert outcome.first_kept == five[3]
    assert outcome.post_tokens < outcome.pre_tokens
    assert number_of_rows(store) == before


def test_the_same_coordinate_is_the_same_view_at_any_later_time(
    session: StoredSession, five: list[int], database: str
) -> None:
    served = [session.view()]

    def look() -> None:
        served.append(session.view())

    compacted(session, five[1])
    look()
    session.append(said("q5"))
    look()
    session.pin(five[2])
    compacted(session, five[4])
    look()
    session.append(said("q6"))
    look()
    session.retract(session.position)
    look()
    session.revert()
    look()
    session.retract(five[0])
    look()
    compacted(session, five[3])
    look()

    with cutbank.open(database) as reopened:
        for then in served:
            at = then.coordinate
            for one in (session, reopened.session("a session")):
                again = one.view(
                    at=at.position, lineage=at.lineage, lineage_version=at.lineage_version
                )
                assert again == then
                assert again.fingerprint == then.fingerprint
    assert all(one.fingerprint != next_.fingerprint for one, next_ in pairwise(served))


def test_a_view_of_a_position_uses_what_was_in_effect_there(
    session: StoredSession, five: list[int]
) -> None:
    compacted(session, five[2])
    session.append(said("q5"))

    assert words(session.view(at=five[3])) == ["q0", "q1", "q2", "q3"]
    assert words(session.view(at=five[4])) == ["q2", "q3", "q4"]
    assert words(session.view(at=five[4], lineage_version=0)) == ["q0", "q1", "q2", "q3", "q4"]


def test_lineages_are_views_of_their_own(session: StoredSession, five: list[int]) -> None:
    compacted(session, five[2], lineage="what if")

    assert session.lineages == ["what if"]
    assert words(session.view()) == ["q0", "q1", "q2", "q3", "q4"]
    assert words(session.view(lineage="what if")) == ["q2", "q3", "q4"]


def test_a_coordinate_that_does_not_exist_is_named(session: StoredSession, five: list[int]) -> None:
    compacted(session, five[2], lineage="other")

    with pytest.raises(NotFoundError, match=f"no position 999: it ends at {five[-1]}"):
        session.view(at=999)
    with pytest.raises(NotFoundError, match=r"no lineage 'x' \(there is: main, other\)"):
        session.view(lineage="x")
    with pytest.raises(NotFoundError, match="no version 99"):
        session.view(lineage="other", lineage_version=99)
    with pytest.raises(NotFoundError):
        session.view(at=0)


def test_a_policy_that_does_not_exist_is_named(session: StoredSession) -> None:
    with pytest.raises(InvalidSettingError, match=r"no policy 'x'.*reserve-headroom"):
        session.compact("x")


def test_a_session_that_does_not_exist_is_named(store: SessionStore) -> None:
    with pytest.raises(NotFoundError, match="there is: none yet"):
        store.session("x", create=False)
    for number in range(7):
        store.session(f"s{number}")
    with pytest.raises(NotFoundError, match=r"\(there is: s0, s1, s2, s3, s4 and 2 more\)"):
        store.session("x", create=False)


# Closing


def test_a_closed_session_is_viewed_and_forked_and_not_changed(
    store: SessionStore, session: StoredSession, five: list[int]
) -> None:
    session.append(call("c1"))
    session.close("done")
    rows = number_of_rows(store)

    acts: list[Callable[[], Any]] = [
        lambda: session.append(Block.user("more")),
        lambda: session.pin(five[0]),
        lambda: session.hide(five[0]),
        lambda: session.retract(five[0]),
        lambda: session.abandon("c1", "late"),
        lambda: session.set_system_prompt("x"),
        session.close,
    ]
    for act in acts:
        with pytest.raises(SessionClosedError, match="fork it to go on"):
            act()

    assert number_of_rows(store) == rows
    assert words(session.view())[:5] == ["q0", "q1", "q2", "q3", "q4"]
    assert session.recall(five[0])[0].block.text.startswith("q0")
    fork = session.fork("fork")
    fork.append(result("c1"), Block.user("more"))
    assert words(fork.view())[-1] == "more"
    assert verify(store).ok


def test_a_recorded_call_proves_what_was_sent(session: StoredSession, five: list[int]) -> None:
    view = session.view()
    compacted(session, five[2])
    session.append(said("later"))

    session.record_call(view, call_id="call", model="m")

    verdict = verify(session.store)
    assert verdict.violations == []
    assert verdict.calls == 1
