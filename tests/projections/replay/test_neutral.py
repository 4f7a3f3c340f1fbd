"""A recorded session as rows: what was said, and the calls that wrote it or saw it first."""

import pytest

from cutbank import Block, BlockKind, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.run_replay import read_recording
from cutbank.domain.blocks import Media, Origin
from cutbank.domain.fidelity.rows import RowKind, SessionRows
from cutbank.projections.recorded_rows import make_session_rows


def rows(session: StoredSession) -> SessionRows:
    return make_session_rows(read_recording(session))


def told(session: StoredSession) -> list[tuple[RowKind, str, int]]:
    return [(row.kind, row.text, row.call) for row in rows(session).rows]


def test_what_was_said_is_told_in_order_with_its_calls(session: StoredSession) -> None:
    session.configure(system_prompt="be kind")
    session.append(Block.user("go"))
    session.append(Block.thinking("hm"), Block.assistant("so"))
    session.append(ToolCall(tool_call_id="c", name="look", arguments={"at": "a.py"}))
    session.append(ToolResult(tool_call_id="c", content="it", is_error=True))
    session.append(Block.developer("hurry"))
    session.append(Block.assistant("done"))

    assert told(session) == [
        (RowKind.SYSTEM, "be kind", 1),
        (RowKind.USER, "go", 1),
        (RowKind.THINKING, "hm", 1),
        (RowKind.ASSISTANT, "so", 1),
        (RowKind.TOOL_CALL, "look\na.py", 1),
        (RowKind.TOOL_RESULT, "it", 2),
        (RowKind.ATTACHMENT, "hurry", 2),
        (RowKind.ASSISTANT, "done", 2),
    ]
    assert rows(session).calls == 2
    assert rows(session).session == session.key


def test_what_comes_while_a_model_writes_is_seen_by_the_call_after(session: StoredSession) -> None:
    session.append(Block.user("go"))
    session.record_call(session.view(), call_id="one")
    session.append(Block.user("wait"), Block.assistant("done"))
    session.append(Block.user("and?"), Block.assistant("so"))

    assert told(session) == [
        (RowKind.USER, "go", 1),
        (RowKind.USER, "wait", 2),
        (RowKind.ASSISTANT, "done", 1),
        (RowKind.USER, "and?", 2),
        (RowKind.ASSISTANT, "so", 2),
    ]


def test_notes_artifacts_summaries_and_what_was_taken_back_are_no_rows(
    session: StoredSession,
) -> None:
    session.append(Block.user("go"), Block.note("n"), Block(kind=BlockKind.ARTIFACT, text="a"))
    session.append(Block.developer("what came before", name="summary"))
    session.retract(session.append(Block.user("no")).first)
    session.hide(session.append(Block.user("hidden from views")).first, replacement="-")
    session.append(Block.assistant("done"))
    image = Media(type="image", mime="image/png", data=b"x")
    session.append(Block(kind=BlockKind.IMAGE, media=image))

    assert told(session) == [
        (RowKind.USER, "go", 1),
        (RowKind.USER, "hidden from views", 1),
        (RowKind.ASSISTANT, "done", 1),
        (RowKind.ATTACHMENT, "", 2),  # which no call saw
    ]


def test_arguments_are_told_as_they_are_meant(session: StoredSession) -> None:
    arguments = {
        "path": 'a\\b "c"\nd',
        "edits": [{"old": "x_y", "new": ["z", 4711, 1.5]}, True, None],
        "é": "ü",
    }
    session.append(ToolCall(tool_call_id="c", name="edit", arguments=arguments))

    row = rows(session).rows[0]

    assert row.text == 'edit\na\\b "c"\nd\nx_y\nz\n4711\n1.5\nü'
    assert row.arguments == arguments
    assert (row.tool, row.call_id) == ("edit", "c")
    session.append(ToolCall(tool_call_id="d", name="patch", arguments="*** Begin a_b.py"))
    assert rows(session).rows[1].text == "patch\n*** Begin a_b.py"


def test_a_result_names_its_call_and_tool(session: StoredSession) -> None:
    session.append(ToolCall(tool_call_id="a", name="look"), ToolCall(tool_call_id="b", name="run"))
    session.append(ToolResult(tool_call_id="b", content="it"))
    session.cancel_tool_call("a", "nobody waits")

    one, other = rows(session).rows[2:]

    assert (one.tool, one.call_id, one.text, one.is_error) == ("run", "b", "it", False)
    assert (other.tool, other.call_id, other.is_error) == ("look", "a", True)
    assert other.kind is RowKind.TOOL_RESULT
    assert other.text == "[abandoned: nobody waits]"


@pytest.mark.parametrize(
    ("entry", "roots"),
    [
        ('{"cwd":"/srv/app"}', ("/srv/app",)),
        ('{"message":{"details":{"cwd": "/srv/app/"}}}', ("/srv/app",)),
        ('{"observation":{"metadata":{"working_dir":"/srv/app"}}}', ("/srv/app",)),
        ('{"workdir":"/srv/app"}', ("/srv/app",)),
        ('{"workspace":"/srv/app"}', ("/srv/app",)),
        ('{"cwd":"\\u002fsrv"}{"cwd":"/srv\\u002fapp"}', ("/srv/app",)),
        ('{"cwd":""}{"cwd":"/"}{"cwd":"app"}{"cwd":7}{"cwd":"/\\q"}cwd', ()),
    ],
)
def test_working_directories_are_read_from_what_a_source_tells(
    session: StoredSession, entry: str, roots: tuple[str, ...]
) -> None:
    session.append(Block.user("go", origin=Origin(format="own", entry=entry)))
    session.append(Block.user('{"cwd":"/elsewhere"}'))  # talk names none
    session.append(Block.note('{"cwd":"/srv/note"}'))  # which is sent to no model

    assert rows(session).roots == (*roots, "/srv/note")
