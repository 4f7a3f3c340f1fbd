"""Transcripts become sessions: all of it, once, and whatever is wrong is said."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from claude_code_talk import SESSION, Talk, text
from opened_stores import store_of
from provider_rules import check_anthropic, check_openai_chat, check_openai_responses
from transcripts import import_file, import_path

from cutbank import (
    HistoryView,
    Ranges,
    SessionStore,
    StoredSession,
    ToolResult,
    export,
    search_sources,
    verify,
)
from cutbank.adapters.runtime.importing.import_batch import ImportBatch, ImportTarget
from cutbank.adapters.runtime.kept_sources import read_kept_lines
from cutbank.adapters.transcripts.formats.steps import Append, SessionStart
from cutbank.domain.errors import ImportFileError, NothingToCompactError
from cutbank.domain.session_events import ModelCalled
from cutbank.projections.rendering.catalog import render_view


def texts(view: HistoryView) -> list[str]:
    return [entry.text for entry in view.entries]


def violations(view: HistoryView) -> list[str]:
    return [
        *check_anthropic(render_view(view, "anthropic")),
        *check_openai_chat(render_view(view, "openai-chat")),
        *check_openai_responses(render_view(view, "openai-responses")),
    ]


@pytest.fixture
def talk() -> Talk:
    """Two turns with parallel calls."""
    talk = Talk()
    talk.user("look around")
    talk.says("m1", text("I look"))
    talk.calls("m1", "t1")
    talk.calls("m1", "t2")
    talk.result("t1", "a.txt")
    talk.result("t2", "b.txt")
    talk.says("m2", text("two files"), output=9)
    talk.user("thanks")
    return talk


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / f"{SESSION}.jsonl"


@pytest.fixture
def imported(store: SessionStore, file: Path) -> Callable[[Talk], StoredSession]:
    """Import a talk, and again, which adds nothing."""

    def imports(talk: Talk) -> StoredSession:
        file.write_bytes(talk.raw())
        import_file(store, file)
        assert import_file(store, file).added == 0
        return store.session(SESSION, create=False)

    return imports


def test_a_transcript_becomes_a_session(store: SessionStore, talk: Talk, file: Path) -> None:
    file.write_bytes(talk.raw())

    report = import_file(store, file)

    assert texts(store.session(SESSION, create=False).view()) == [
        "look around", "I look", '{"command":"ls"}', '{"command":"ls"}',
        "a.txt", "b.txt", "two files", "thanks",
    ]  # fmt: skip
    assert (report.format, report.sessions, report.complete) == ("claude-code", [SESSION], True)
    assert (report.entries, report.imported, report.added) == (8, 8, 8)
    assert (report.tool_calls, report.tool_results, report.errors) == (2, 2, [])


def test_a_call_is_recorded_once(talk: Talk, imported: Callable[[Talk], StoredSession]) -> None:
    session = imported(talk)

    log = session.log.events.read(session.log.chain(), Ranges.span(1, session.position))
    first, second = [one for one in log if isinstance(one.event, ModelCalled)]
    call = cast(ModelCalled, second.event)
    assert (cast(ModelCalled, first.event).call_id, call.call_id) == ("m1", "m2")
    assert call.usage is not None
    assert (call.usage.context, call.usage.output) == (123, 9)
    assert texts(session.view(at=call.position))[-1] == "b.txt"


def test_its_own_compactions_are_the_lineage_recorded(
    store: SessionStore, talk: Talk, imported: Callable[[Talk], StoredSession]
) -> None:
    talk.boundary(postTokens=900)
    talk.summary("They looked around.")
    talk.says("m3", text("what next?"))

    session = imported(talk)

    view = session.view()
    assert session.log.lineages == ["recorded"]
    assert view.inherited_from == "recorded"
    assert view.summary is not None
    assert view.summary.text == "They looked around."
    assert view.boundary is not None
    assert (view.boundary.pre_tokens, view.boundary.post_tokens) == (155_000, 900)
    assert texts(view) == ["what next?"]
    assert texts(session.view(lineage_version=0))[0] == "look around"
    assert verify(store).is_ok


def test_a_call_that_is_left_open_is_closed(store: SessionStore, talk: Talk, file: Path) -> None:
    talk.calls("m3", "t3")
    talk.user("never mind")
    talk.calls("m4", "t4")
    file.write_bytes(talk.raw())

    report = import_file(store, file)

    session = store.session(SESSION)
    assert report.abandoned == 1
    assert list(session.log.state.open_calls) == ["t4"]
    assert import_file(store, file).abandoned == 0
    assert violations(session.view()) == []


def side_by_side() -> Talk:
    """A talk with results before their calls, one that comes after an interruption, and one whose
    call never comes."""
    talk = Talk()
    talk.user("go")
    first = talk.calls("m1", "t1")
    second = talk.calls("m1", "t2")
    talk.result("t2", "two")
    talk.result("t1", "one", parentUuid=first)
    talk.entries[2:4] = reversed(talk.entries[2:4])
    talk.calls("m2", "t3", parentUuid=second)
    talk.user("meanwhile")
    talk.calls("m3", "t4")
    talk.result("t4", "four")
    item = {"type": "tool_result", "tool_use_id": "t9", "content": "without a call"}
    talk.user([{"type": "tool_result", "tool_use_id": "t3", "content": "three"}, item])
    talk.says("m4", text("done"))
    talk.calls("m5", "t5")
    talk.user("never mind")
    talk.says("m6", text("well"))
    return talk


def test_results_pair_wherever_they_stand(store: SessionStore, file: Path, tmp_path: Path) -> None:
    file.write_bytes(side_by_side().raw())

    report = import_file(store, file)

    session = store.session(SESSION)
    results = {
        entry.block.tool_call_id: entry.block.text
        for entry in session.view().entries
        if isinstance(entry.block, ToolResult)
    }
    (stray,) = search_sources(store, "without a call")
    closed = "[abandoned: never answered in the source]"
    assert results == {"t1": "one", "t2": "two", "t3": "three", "t4": "four", "t5": closed}
    assert texts(session.view())[-2:] == [closed, "well"]
    reason = "message.content[1]: tool_use_id: t9 answers no open call"
    assert report.errors == [f"{file}:{stray.line}: {reason}"]
    assert store.search("without a call") == []
    assert report.tool_results == 4
    assert report.abandoned == 1
    assert list(session.log.state.open_calls) == []
    assert violations(session.view()) == []
    assert import_file(store, file).added == 0

    export(session, "claude-code", tmp_path / "out.jsonl")
    again = [json.loads(line)["uuid"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert again == [entry["uuid"] for entry in side_by_side().entries]


def test_an_unreadable_line_is_reported_and_found_in_the_source(
    store: SessionStore, talk: Talk, file: Path
) -> None:
    lines = {
        b'{"type": "user", said: "zebra"}': "not JSON",
        b'{"type": "user", "said": "zebra \0"}': "holds NUL bytes",
        b'{"type": "user", "said": "zebra \xff"}': "not UTF-8 text",
    }
    file.write_bytes(b"\n".join(lines) + b"\n" + talk.raw())

    report = import_file(store, file)

    assert [hit.line for hit in search_sources(store, "zebra")] == [1, 2, 3]
    for number, (line, reason) in enumerate(lines.items(), 1):
        assert [one.text for one in read_kept_lines(store.session(SESSION), number)] == [line]
        assert report.errors[number - 1].startswith(f"{file}:{number}: {reason}")
    assert (report.entries, report.imported) == (11, 8)
    assert store.search("zebra") == []
    assert import_file(store, file).added == 0


def test_what_cannot_stand_in_a_view_is_kept_whatever_is_in_it(session: StoredSession) -> None:
    target = ImportTarget(SessionStart(session.key), session=session)
    stray = ToolResult(tool_call_id="nobody", content="half \ud800 a pair")

    batch = ImportBatch(store_of(session), session.namespace, [(target, Append("k", stray, "e"))])
    session.log.events.save(*batch.sessions.values(), keys=batch.keys)

    (note,) = session.recall(search="nobody")
    assert json.loads(note.block.text)["content"] == "half \ud800 a pair"
    assert "answer" in batch.errors[0]


def test_unknown_entries_are_counted_and_found_in_the_source(
    store: SessionStore, talk: Talk, file: Path
) -> None:
    talk.add("hologram", payload={"x": 1})
    file.write_bytes(talk.raw())

    report = import_file(store, file)

    (found,) = search_sources(store, "hologram")
    (line,) = read_kept_lines(store.session(SESSION), found.line)
    assert report.unknown == {"hologram": 1}
    assert report.unknown_at == {"hologram": f"{file}:{found.line}"}
    assert json.loads(line.text)["payload"] == {"x": 1}
    assert store.session(SESSION).recall(search="hologram") == []


def test_a_file_that_says_nothing_makes_no_session(store: SessionStore, file: Path) -> None:
    told = Talk()
    told.add("mode", mode="normal")
    told.add("hologram", payload={"x": 1})
    file.write_bytes(told.raw())

    report = import_file(store, file)

    assert (report.sessions, report.skipped, report.unknown) == (
        [],
        {"no model was sent it": 1},
        {"hologram": 1},
    )
    assert list(store.sessions()) == []


def test_nothing_to_import_is_said(store: SessionStore, tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "nowhere", "does not exist"), (tmp_path, "no transcripts")):
        with pytest.raises(ImportFileError, match=reason):
            list(import_path(store, path))


@pytest.mark.slow
def test_shared_transcripts_import_and_compact(store: SessionStore, shared_sessions: Path) -> None:
    reports = list(import_path(store, shared_sessions / "claude-code"))

    assert reports
    assert all(report.complete for report in reports)
    for report in reports:
        accounted = report.imported + sum(report.skipped.values()) + sum(report.unknown.values())
        assert accounted + len(report.errors) >= report.entries, report
    assert verify(store).violations == []
    for session in store.sessions():
        assert violations(session.view()) == [], session
        at = session.view().coordinate
        for version in range(1, at.lineage_version + 1 if session.log.lineages else 0):
            assert violations(session.view(lineage_version=version)) == [], session
        try:
            outcome = session.compact(limit=12_000)
        except NothingToCompactError:
            continue
        assert outcome.post_tokens < outcome.pre_tokens
        assert violations(session.view()) == [], session
    assert verify(store).violations == []
    assert all(not report.added for report in import_path(store, shared_sessions / "claude-code"))


def test_tools_that_no_log_can_hold_are_left_out(store: SessionStore, tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    deep = "[" * 400 + "]" * 400
    said = '{"role": "user", "content": "words"}'
    file.write_text(f'{{"model": "m", "messages": [{said}], "tools": [{deep}]}}')

    report = import_file(store, file)

    (error,) = report.errors
    assert "left out" in error
    assert report.complete
    assert texts(store.session(report.sessions[0], create=False).view()) == ["words"]
    assert verify(store).is_ok


def test_a_result_takes_no_call_of_a_sub_agent(store: SessionStore, file: Path) -> None:
    talk = Talk()
    talk.user("go")
    talk.user("look", parentUuid=None, isSidechain=True)
    talk.calls("m1", "t1", isSidechain=True)
    talk.result("t1", "one", parentUuid="unknown", isSidechain=True)
    file.write_bytes(talk.raw())

    first, again = import_file(store, file), import_file(store, file)

    assert first.errors == again.errors
    assert "t1 answers no open call" in first.errors[0]
    assert again.added == 0
