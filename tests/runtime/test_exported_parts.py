"""What writers are given of a session: every block once, in order, boundaries where they stood."""

from codex_written import CutAt
from short_sessions import result, said

from cutbank import Block, SessionStore, StoredSession, ToolCall
from cutbank.adapters.runtime.exporter import make_outgoing
from cutbank.adapters.transcripts.formats.outgoing import (
    OutgoingBlock,
    OutgoingCall,
    OutgoingCompaction,
    OutgoingMessage,
    OutgoingPart,
    group_outgoing_messages,
)
from cutbank.domain.item import Role


def call(name: str, message: str | None = None) -> ToolCall:
    return ToolCall(tool_call_id=name, name="read", arguments={}, message_id=message)


def told(part: OutgoingPart | OutgoingMessage) -> str:
    """A part in a word or two."""
    match part:
        case OutgoingBlock(block=block):
            return (block.text.split() or [""])[0] if block.kind != "tool_call" else "call"
        case OutgoingCall(call=one):
            return f"called {one.call_id}"
        case OutgoingCompaction(boundary=boundary):
            return f"compacted {boundary.kept}"
        case OutgoingMessage(outgoing_blocks=said):
            return "+".join(told(one) for one in said)


def parts_of(session: StoredSession, *, view: bool = False) -> list[str]:
    return [told(part) for part in make_outgoing(session, view=view).read_parts()]


def messages_of(session: StoredSession) -> list[OutgoingMessage]:
    outgoing = make_outgoing(session)
    parts = group_outgoing_messages(outgoing, outgoing.read_parts())
    return [one for one in parts if isinstance(one, OutgoingMessage)]


def test_the_log_has_a_boundary_where_it_was_served_and_none_that_was_reverted(
    session: StoredSession,
) -> None:
    session.append(said("first"), Block.assistant("yes " * 300), said("second"))
    session.compact(CutAt(session.position))
    session.append(Block.assistant("third"), said("fourth"))
    assert parts_of(session) == ["first", "yes", "second", "compacted #6", "third", "fourth"]

    session.revert()

    assert parts_of(session) == ["first", "yes", "second", "third", "fourth"]


def test_a_view_is_told_as_it_is_shown_its_boundary_first(session: StoredSession) -> None:
    session.append(said("first"), Block.assistant("yes " * 300), said("second"))
    session.append(call("a"), result("a", "long " * 500))
    session.compact(CutAt(6, shortened=8))

    assert parts_of(session, view=True) == ["compacted #6-8", "second", "call", "long"]
    *_, last = make_outgoing(session, view=True).read_parts()
    assert isinstance(last, OutgoingBlock)
    assert len(last.block.text) < 200


def test_pieces_of_a_message_are_together_and_its_results_follow(session: StoredSession) -> None:
    session.append(said("go"), Block.assistant("both", message_id="m"), call("a", "m"))
    session.append(result("a", "one"), call("b", "m"), result("b", "two"))
    session.record_call(session.view(), call_id="m", model="large")
    session.append(Block.assistant("done", message_id="n"))

    messages = messages_of(session)

    assert [(one.role, told(one)) for one in messages] == [
        (Role.USER, "go"),
        (Role.ASSISTANT, "both+call+call"),
        (Role.TOOL_RESULT, "one"),
        (Role.TOOL_RESULT, "two"),
        (Role.ASSISTANT, "done"),
    ]
    assert [one.call.call_id for one in messages if one.call] == ["m"]


def test_messages_without_an_id_end_where_a_result_stands(session: StoredSession) -> None:
    session.append(said("go"), Block.assistant("one"), call("a"), result("a"))
    session.append(Block.assistant("two"), Block.assistant("three"))

    assert [told(one) for one in messages_of(session)] == ["go", "one+call", "done", "two+three"]


def test_branches_are_told_with_the_session_without_what_they_share(store: SessionStore) -> None:
    home = store.session("home")
    home.append(said("shared"))
    branch = home.fork("home/branch-1")
    branch.append(said("apart"))
    home.append(said("onwards"))
    home.fork("elsewhere").append(said("another"))

    outgoing = make_outgoing(home)

    assert [told(part) for part in outgoing.read_parts()] == ["shared", "onwards"]
    assert [[told(part) for part in fork.read_parts()] for fork in outgoing.forks] == [["apart"]]
    assert parts_of(branch) == ["shared", "apart"]
