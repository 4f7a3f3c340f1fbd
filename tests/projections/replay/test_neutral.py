"""A recorded session as rows: what was said, and the calls that wrote it or saw it first."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fidelity_sessions import STEPS
from hypothesis import given
from hypothesis import strategies as st
from transcripts import SAMPLES, import_file, name_of, real, samples

import cutbank
from cutbank import Block, ToolCall, ToolResult
from cutbank.adapters.analysis.replaying.recordings import recording_of
from cutbank.adapters.runtime.sessions.stored_session import StoredSession
from cutbank.domain.blocks import Kind, Media, Origin
from cutbank.domain.fidelity.rows import BY_AGENT, Row, Rows, Said
from cutbank.projections.replay.recorded_rows import rows_of
from cutbank.projections.replay.recording import Recording


@pytest.fixture
def session(database: str) -> Iterator[StoredSession]:
    with cutbank.open(database) as store:
        yield store.session("s")


def rows(session: StoredSession) -> Rows:
    return rows_of(recording_of(session))


def told(session: StoredSession) -> list[tuple[Said, str, int]]:
    return [(row.said, row.text, row.call) for row in rows(session).rows]


def test_what_was_said_is_told_in_order_with_its_calls(session: StoredSession) -> None:
    session.set_system_prompt("be kind")
    session.append(Block.user("go"))
    session.append(Block.thinking("hm"), Block.assistant("so"))
    session.append(ToolCall(tool_call_id="c", name="look", arguments={"at": "a.py"}))
    session.append(ToolResult(tool_call_id="c", content="it", is_error=True))
    session.append(Block.developer("hurry"))
    session.append(Block.assistant("done"))

    assert told(session) == [
        (Said.SYSTEM, "be kind", 1),
        (Said.USER, "go", 1),
        (Said.THINKING, "hm", 1),
        (Said.ASSISTANT, "so", 1),
        (Said.TOOL_CALL, "look\na.py", 1),
        (Said.TOOL_RESULT, "it", 2),
        (Said.ATTACHMENT, "hurry", 2),
        (Said.ASSISTANT, "done", 2),
    ]
    assert rows(session).calls == 2
    assert rows(session).session == "s"


def test_what_no_call_saw_belongs_to_the_one_that_never_came(session: StoredSession) -> None:
    session.append(Block.user("go"), Block.assistant("done"), Block.user("and?"))

    assert told(session)[-1] == (Said.USER, "and?", 2)


def test_what_comes_while_a_model_writes_is_seen_by_the_call_after(
    session: StoredSession,
) -> None:
    session.append(Block.user("go"))
    session.record_call(session.view(), call_id="one")
    session.append(Block.user("wait"), Block.assistant("done"))
    session.append(Block.user("and?"), Block.assistant("so"))

    assert told(session) == [
        (Said.USER, "go", 1),
        (Said.USER, "wait", 2),
        (Said.ASSISTANT, "done", 1),
        (Said.USER, "and?", 2),
        (Said.ASSISTANT, "so", 2),
    ]


def test_rows_stand_at_the_positions_of_their_blocks(session: StoredSession) -> None:
    session.append(Block.user("go"))
    session.append(ToolCall(tool_call_id="c", name="look"))
    session.append(ToolResult(tool_call_id="c", content="it"))

    log = recording_of(session).log
    for row in rows(session).rows:
        assert log[row.position - 1].event.block.text in {row.text, "{}"}  # type: ignore[attr-defined]


def test_notes_artifacts_summaries_and_what_was_taken_back_are_no_rows(
    session: StoredSession,
) -> None:
    session.append(Block.user("go"), Block.note("n"), Block(kind=Kind.ARTIFACT, text="a"))
    session.append(Block.developer("what came before", name="summary"))
    back = session.append(Block.user("no")).first
    session.retract(back)
    session.append(Block.assistant("done"))

    assert [row.text for row in rows(session).rows] == ["go", "done"]


def test_what_is_hidden_from_views_was_said_all_the_same(session: StoredSession) -> None:
    at = session.append(Block.user("go")).first
    session.hide(at, replacement="-")

    assert [row.text for row in rows(session).rows] == ["go"]


def test_pictures_take_no_text(session: StoredSession) -> None:
    image = Media(type="image", mime="image/png", data=b"x")
    session.append(Block(kind=Kind.IMAGE, media=image), Block.user("look"))

    assert [(row.said, row.text) for row in rows(session).rows] == [
        (Said.ATTACHMENT, ""),
        (Said.USER, "look"),
    ]


def test_arguments_are_told_as_they_are_meant(session: StoredSession) -> None:
    arguments = {
        "path": 'a\\b "c"\nd',
        "edits": [{"old": "x_y", "new": ["z", 4711, 1.5]}, True, None],
        "é": "ü",
    }
    session.append(ToolCall(tool_call_id="c", name="edit", arguments=arguments))

    (row,) = rows(session).rows

    assert row.text == 'edit\na\\b "c"\nd\nx_y\nz\n4711\n1.5\nü'
    assert row.arguments == arguments
    assert (row.tool, row.call_id) == ("edit", "c")


def test_arguments_that_are_no_object_are_told_as_they_stand(session: StoredSession) -> None:
    session.append(ToolCall(tool_call_id="c", name="patch", arguments="*** Begin a_b.py"))

    assert rows(session).rows[0].text == "patch\n*** Begin a_b.py"


def test_a_result_names_its_call_and_tool(session: StoredSession) -> None:
    session.append(ToolCall(tool_call_id="a", name="look"), ToolCall(tool_call_id="b", name="run"))
    session.append(ToolResult(tool_call_id="b", content="it"))
    session.abandon("a", "nobody waits")

    one, other = rows(session).rows[2:]

    assert (one.tool, one.call_id, one.text, one.is_error) == ("run", "b", "it", False)
    assert (other.tool, other.call_id, other.is_error) == ("look", "a", True)
    assert other.said is Said.TOOL_RESULT
    assert other.text == "[abandoned: nobody waits]"


@pytest.mark.parametrize(
    "entry",
    [
        '{"cwd":"/srv/app"}',
        '{"message":{"details":{"cwd": "/srv/app/"}}}',
        '{"observation":{"metadata":{"working_dir":"/srv/app"}}}',
        '{"workdir":"\\/srv\\/app"}'.replace("\\/", "/"),
        '{"workspace":"/srv/app"}',
        '{"cwd":"\\u002fsrv"}{"cwd":"/srv\\u002fapp"}',
    ],
)
def test_working_directories_are_read_from_what_a_source_tells(
    session: StoredSession, entry: str
) -> None:
    origin = Origin(format="own", entry=entry)
    session.append(Block.user("go", origin=origin))

    assert rows(session).roots == ("/srv/app",)


def test_working_directories_are_read_from_notes_too(session: StoredSession) -> None:
    session.append(Block.note('{"cwd":"/srv/app"}'), Block.note('{"cwd":"/srv"}'))

    assert rows(session).roots == ("/srv", "/srv/app")


@pytest.mark.parametrize(
    "entry", ['{"cwd":""}', '{"cwd":"/"}', '{"cwd":"app"}', '{"cwd":7}', '{"cwd":"/\\q"}', "cwd"]
)
def test_what_is_no_directory_is_no_root(session: StoredSession, entry: str) -> None:
    session.append(Block.user("go", origin=Origin(format="own", entry=entry)))

    assert rows(session).roots == ()


def test_what_is_merely_said_of_directories_is_no_root(session: StoredSession) -> None:
    session.append(Block.user('{"cwd":"/srv/app"}'))

    assert rows(session).roots == ()


def check(recording: Recording) -> None:
    """What holds of the rows of any recording."""
    found = rows_of(recording)
    assert [row.position for row in found.rows] == sorted({row.position for row in found.rows})
    wrote = {at: call.number for call in recording.calls for at in call.answer}
    for row in found.rows:
        block = getattr(recording.at(row.position).event, "block", None)
        if row.said in BY_AGENT:
            assert row.call == wrote[row.position]
        else:
            assert row.call == first_that_sees(recording, row)
        if row.said is Said.TOOL_CALL:
            assert block is not None
            assert row.text.split("\n")[0] == block.name
            assert all(word in row.text for word in strings(row.arguments))
        elif block is not None:
            assert row.text == block.text
    assert found.calls == len(recording.calls)
    assert all(root.startswith("/") and not root.endswith("/") for root in found.roots)


def first_that_sees(recording: Recording, row: Row) -> int:
    calls = (call.number for call in recording.calls if call.sees >= row.position)
    return next(calls, len(recording.calls) + 1)


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


@given(st.lists(STEPS, max_size=12), st.data())
def test_rows_tell_every_session(steps: list[tuple[str, str, str]], data: st.DataObject) -> None:
    with cutbank.open(":memory:") as store:
        session = store.session("s")
        for number, (step, text, answer) in enumerate(steps):
            match step:
                case "user":
                    session.append(Block.user(text))
                case "attached":
                    session.append(Block.developer(text))
                case "tool":
                    call = ToolCall(tool_call_id=f"c{number}", name="run", arguments={"x": [text]})
                    session.append(call)
                    session.append(ToolResult(tool_call_id=f"c{number}", content=answer))
                case _:
                    at = session.append(Block.assistant(text)).first
                    if data.draw(st.booleans()):
                        session.retract(at)
        if steps:
            check(recording_of(session))


@pytest.mark.parametrize("path", samples(), ids=name_of)
def test_rows_tell_every_sample(path: Path) -> None:
    with cutbank.open(":memory:") as store:
        import_file(store, path)
        for session in store.sessions():
            check(recording_of(store.session(session.key, namespace=session.namespace)))


def test_the_sample_of_each_coding_agent_tells_its_directory() -> None:
    with cutbank.open(":memory:") as store:
        import_file(store, next((SAMPLES / "claude-code").glob("*.jsonl")))
        (session, *_) = store.sessions()
        assert rows(store.session(session.key)).roots


@pytest.mark.slow
@pytest.mark.skipif(not real(), reason="CUTBANK_SESSIONS names no folder of real sessions")
def test_rows_tell_every_real_session() -> None:
    with cutbank.open(":memory:") as store:
        for path in real():
            store.import_(path)
        for session in store.sessions():
            check(recording_of(store.session(session.key, namespace=session.namespace)))
