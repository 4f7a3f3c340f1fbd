"""What writers are given of a session: every block once, in order, boundaries where they stood."""

from dataclasses import dataclass
from typing import ClassVar

from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.runtime.exporting.exporter import outgoing_of
from cutbank.adapters.transcripts.formats.outgoing import (
    Called,
    Compacted,
    Entry,
    Message,
    Part,
    Said,
    entries,
    messages,
)
from cutbank.domain.blocks import Origin
from cutbank.domain.compaction_events import Trim
from cutbank.domain.messages import Role
from cutbank.domain.window import Plan, Window


@dataclass(frozen=True)
class CutAt:
    """A policy that cuts, and shortens, where the test says."""

    name: ClassVar[str] = "cut-at"

    cut: int
    shortened: int | None = None

    def plan(self, _: Window) -> Plan | None:
        trims = (Trim(position=self.shortened, head=10, tail=5),) if self.shortened else ()
        return Plan(cut=self.cut, reason="wanted", summary_tokens=500, trims=trims)


def prompt(text: str) -> Block:
    return Block.user(f"{text} " * 200)


def call(name: str, message: str | None = None) -> ToolCall:
    return ToolCall(tool_call_id=name, name="read", arguments={}, message_id=message)


def result(name: str, content: str = "done") -> ToolResult:
    return ToolResult(tool_call_id=name, content=content)


def told(part: Part | Entry | Message) -> str:
    """A part in a word or two."""
    match part:
        case Said(block=block):
            return (block.text.split() or [""])[0] if block.kind != "tool_call" else "call"
        case Called(call=one):
            return f"called {one.call_id}"
        case Compacted(boundary=boundary):
            return f"compacted {boundary.kept}"
        case Message(said=said):
            return "+".join(told(one) for one in said)
        case Entry(raw=raw, said=said):
            return f"raw {raw}" if raw else "entry " + "+".join(told(one) for one in said)


def parts_of(session: StoredSession, *, view: bool = False) -> list[str]:
    return [told(part) for part in outgoing_of(session, view=view).parts()]


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

    said = [part for part in outgoing_of(session).parts() if isinstance(part, Said)]

    assert [(told(one), one.retracted) for one in said] == [
        ("first", False), ("second", True), ("third", False),
    ]  # fmt: skip
    assert [told(one) for one in messages(iter(said)) if isinstance(one, Message)] == [
        "first", "third",
    ]  # fmt: skip


def test_a_view_is_told_as_it_is_shown_its_boundary_first(session: StoredSession) -> None:
    session.append(prompt("first"), Block.assistant("yes " * 300), prompt("second"))
    session.append(call("a"), result("a", "long " * 500))
    session.compact(CutAt(6, shortened=8))

    parts = list(outgoing_of(session, view=True).parts())

    assert [told(part) for part in parts] == ["compacted #6-8", "second", "call", "long"]
    last = parts[-1]
    assert isinstance(last, Said)
    assert len(last.block.text) < 200


def test_a_session_that_was_never_compacted_is_its_own_view(session: StoredSession) -> None:
    session.append(prompt("first"), Block.assistant("yes"))

    assert parts_of(session, view=True) == parts_of(session) == ["first", "yes"]


def test_a_call_that_nobody_will_answer_stays_unanswered(session: StoredSession) -> None:
    session.append(prompt("first"), call("a"))
    session.abandon("a", "the process died")

    parts = list(outgoing_of(session).parts())

    assert isinstance(parts[-1], Said)
    assert parts[-1].abandoned
    assert [told(one) for one in messages(iter(parts)) if isinstance(one, Message)] == [
        "first", "call",
    ]  # fmt: skip
    assert [told(one) for one in entries(iter(parts), "codex")] == ["first", "call"]


def test_pieces_of_a_message_are_together_and_its_results_follow(session: StoredSession) -> None:
    session.append(prompt("go"), Block.assistant("both", message_id="m"), call("a", "m"))
    session.append(result("a", "one"), call("b", "m"), result("b", "two"))
    session.record_call(session.view(), call_id="m", model="large")
    session.append(Block.assistant("done", message_id="n"))

    told_of = [one for one in messages(outgoing_of(session).parts()) if isinstance(one, Message)]

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

    told_of = [told(one) for one in messages(outgoing_of(session).parts())]

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

    told_of = list(entries(outgoing_of(session).parts(), "codex"))

    assert [told(one) for one in told_of] == [
        "entry first+second", "raw raw text", "entry third", "ours", "theirs",
    ]  # fmt: skip
    assert isinstance(told_of[0], Entry)
    assert told_of[0].rest == {"a": 1}


def test_a_result_that_answers_nothing_is_written_back_as_the_result_it_was(
    session: StoredSession,
) -> None:
    orphan = ToolResult(tool_call_id="x", content="of old", origin=Origin(format="pi", entry="{}"))
    kept = Block.note(orphan.model_dump_json(), name="tool_result", origin=orphan.origin)
    session.append(Block.user("go"), kept)

    (entry,) = [one for one in entries(outgoing_of(session).parts(), "pi") if type(one) is Entry]

    assert entry.said[0].block == orphan


def test_branches_are_told_with_the_session_without_what_they_share(store: SessionStore) -> None:
    home = store.session("home")
    home.append(prompt("shared"))
    branch = home.fork("home/branch-1")
    branch.append(prompt("apart"))
    home.append(prompt("onwards"))
    home.fork("elsewhere").append(prompt("another"))

    outgoing = outgoing_of(home)

    assert [told(part) for part in outgoing.parts()] == ["shared", "onwards"]
    assert [[told(part) for part in fork.parts()] for fork in outgoing.forks] == [["apart"]]
    assert parts_of(branch) == ["shared", "apart"]
