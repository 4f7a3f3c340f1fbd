"""What writers are given of a session: every block once, in order, boundaries where they stood."""

from codex_written import CutAt

from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.runtime.exporting.exporter import make_outgoing
from cutbank.adapters.transcripts.formats.outgoing import (
    OutgoingBlock,
    OutgoingCall,
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingPart,
    group_outgoing_entries,
    group_outgoing_messages,
)
from cutbank.domain.blocks import Origin
from cutbank.domain.messages import Role


def prompt(text: str) -> Block:
    return Block.user(f"{text} " * 200)


def call(name: str, message: str | None = None) -> ToolCall:
    return ToolCall(tool_call_id=name, name="read", arguments={}, message_id=message)


def result(name: str, content: str = "done") -> ToolResult:
    return ToolResult(tool_call_id=name, content=content)


def told(part: OutgoingPart | OutgoingEntry | OutgoingMessage) -> str:
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
        case OutgoingEntry(raw=raw, outgoing_blocks=said):
            return f"raw {raw}" if raw else "entry " + "+".join(told(one) for one in said)


def parts_of(session: StoredSession, *, view: bool = False) -> list[str]:
    return [told(part) for part in make_outgoing(session, view=view).read_parts()]


def test_the_log_is_told_in_order_and_a_boundary_where_it_was_served(
    session: StoredSession,
) -> None:
    session.append(prompt("first"), Block.assistant("yes " * 300), prompt("second"))
    session.compact(CutAt(session.position))
    session.append(Block.assistant("third"), prompt("fourth"))

    assert parts_of(session) == [
        "first", "yes", "second", "compacted #6", "third", "fourth",
    ]  # fmt: skip


def test_a_boundary_that_was_reverted_is_not_told(session: StoredSession) -> None:
    session.append(prompt("first"), Block.assistant("yes " * 300), prompt("second"))
    session.compact(CutAt(session.position))
    session.revert()

    assert parts_of(session) == ["first", "yes", "second"]


def test_what_was_taken_back_is_told_as_such(session: StoredSession) -> None:
    session.append(prompt("first"), prompt("second"))
    session.rewind(session.position - 1)
    session.append(prompt("third"))

    said = [part for part in make_outgoing(session).read_parts() if isinstance(part, OutgoingBlock)]

    assert [(told(one), one.is_retracted) for one in said] == [
        ("first", False), ("second", True), ("third", False),
    ]  # fmt: skip
    messages = group_outgoing_messages(iter(said))
    assert [told(one) for one in messages if isinstance(one, OutgoingMessage)] == ["first", "third"]


def test_a_view_is_told_as_it_is_shown_its_boundary_first(session: StoredSession) -> None:
    session.append(prompt("first"), Block.assistant("yes " * 300), prompt("second"))
    session.append(call("a"), result("a", "long " * 500))
    session.compact(CutAt(6, shortened=8))

    parts = list(make_outgoing(session, view=True).read_parts())

    assert [told(part) for part in parts] == ["compacted #6-8", "second", "call", "long"]
    last = parts[-1]
    assert isinstance(last, OutgoingBlock)
    assert len(last.block.text) < 200


def test_a_call_that_nobody_will_answer_stays_unanswered(session: StoredSession) -> None:
    session.append(prompt("first"), call("a"))
    session.cancel_tool_call("a", "the process died")

    parts = list(make_outgoing(session).read_parts())

    assert isinstance(parts[-1], OutgoingBlock)
    assert parts[-1].is_cancelled_result
    messages = group_outgoing_messages(iter(parts))
    assert [told(one) for one in messages if isinstance(one, OutgoingMessage)] == ["first", "call"]
    assert [told(one) for one in group_outgoing_entries(iter(parts), "codex")] == ["first", "call"]


def test_pieces_of_a_message_are_together_and_its_results_follow(session: StoredSession) -> None:
    session.append(prompt("go"), Block.assistant("both", message_id="m"), call("a", "m"))
    session.append(result("a", "one"), call("b", "m"), result("b", "two"))
    session.record_call(session.view(), call_id="m", model="large")
    session.append(Block.assistant("done", message_id="n"))

    told_of = [
        one
        for one in group_outgoing_messages(make_outgoing(session).read_parts())
        if isinstance(one, OutgoingMessage)
    ]

    assert [(one.role, told(one)) for one in told_of] == [
        (Role.USER, "go"),
        (Role.ASSISTANT, "both+call+call"),
        (Role.TOOL_RESULT, "one"),
        (Role.TOOL_RESULT, "two"),
        (Role.ASSISTANT, "done"),
    ]
    assert [one.call.call_id for one in told_of if one.call] == ["m"]


def test_messages_without_an_id_end_where_a_result_stands(session: StoredSession) -> None:
    session.append(prompt("go"), Block.assistant("one"), call("a"), result("a"))
    session.append(Block.assistant("two"), Block.assistant("three"))

    told_of = [told(one) for one in group_outgoing_messages(make_outgoing(session).read_parts())]

    assert told_of == ["go", "one+call", "done", "two+three"]


def test_entries_of_the_own_source_are_put_together_and_others_told_apart(
    session: StoredSession,
) -> None:
    def of(line: int, entry: str | None = None, source: str = "codex") -> Origin:
        return Origin(format=source, id=f"e{line}", line=line, entry=entry)

    session.append(
        Block.assistant("first", origin=of(1, '{"a": 1}')),
        Block.assistant("second", origin=of(1)),
        Block.note("raw text", name="header", origin=of(2)),
        Block.assistant("third", origin=of(3, "{}")),
        Block.user("ours"),
        Block.user("theirs", origin=of(4, "{}", "pi")),
    )

    told_of = list(group_outgoing_entries(make_outgoing(session).read_parts(), "codex"))

    assert [told(one) for one in told_of] == [
        "entry first+second", "raw raw text", "entry third", "ours", "theirs",
    ]  # fmt: skip
    assert isinstance(told_of[0], OutgoingEntry)
    assert told_of[0].remainder == {"a": 1}


def test_a_result_that_answers_nothing_is_written_back_as_the_result_it_was(
    session: StoredSession,
) -> None:
    orphan = ToolResult(tool_call_id="x", content="of old", origin=Origin(format="pi", entry="{}"))
    kept = Block.note(orphan.model_dump_json(), name="tool_result", origin=orphan.origin)
    session.append(Block.user("go"), kept)

    (entry,) = [
        one
        for one in group_outgoing_entries(make_outgoing(session).read_parts(), "pi")
        if type(one) is OutgoingEntry
    ]

    assert entry.outgoing_blocks[0].block == orphan


def test_branches_are_told_with_the_session_without_what_they_share(store: SessionStore) -> None:
    home = store.session("home")
    home.append(prompt("shared"))
    branch = home.fork("home/branch-1")
    branch.append(prompt("apart"))
    home.append(prompt("onwards"))
    home.fork("elsewhere").append(prompt("another"))

    outgoing = make_outgoing(home)

    assert [told(part) for part in outgoing.read_parts()] == ["shared", "onwards"]
    assert [[told(part) for part in fork.read_parts()] for fork in outgoing.forks] == [["apart"]]
    assert parts_of(branch) == ["shared", "apart"]
