"""Sessions that other agents did not make, told in their formats: the same is said in them."""

import json
from pathlib import Path
from typing import Any

import pytest
from told_elsewhere import Said, again, compact, long_talk, paired, said, talk, told
from transcripts import SAMPLES, name_of

from cutbank import SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.exporting.exporter import export, outgoing_of
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.catalog import FORMATS, recognise
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import Append, Call, EntryRead
from cutbank.domain.blocks import AnyBlock, Block, Kind, ToolCall, ToolResult

NAMES = ("opencode", "copilot-cli", "gemini-cli", "gemini-history")
FILES = [
    pytest.param(path, id=name_of(path))
    for name in NAMES
    for path in sorted((SAMPLES / name).rglob("*.json*"))
]


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


@pytest.mark.parametrize("name", NAMES)
def test_what_was_said_is_the_same_in_the_same_order(
    store: SessionStore, session: StoredSession, name: str, tmp_path: Path
) -> None:
    talk(session)

    path = told(session, name, tmp_path)
    imported, report = again(store, path)

    kinds = ("user", "assistant", "thinking", "tool_call", "tool_result")
    before = [one for one in said(session) if one[0] in kinds]
    after = [one for one in said(imported) if one[0] in kinds]
    assert paired(_as_objects(after)) == paired(_as_objects(before))
    assert report.errors == []
    assert verify(store).ok


@pytest.mark.parametrize("name", NAMES)
def test_images_and_what_failed_are_told(
    store: SessionStore, session: StoredSession, name: str, tmp_path: Path
) -> None:
    talk(session)

    imported, _ = again(store, told(session, name, tmp_path))

    blocks = [entry.block for entry in imported.view().entries]
    (image,) = [block for block in blocks if block.kind is Kind.IMAGE]
    assert isinstance(image, Block)
    assert image.media
    assert image.media.data == b"\x89PNG-a-small-picture"
    results = {block.tool_call_id: block for block in blocks if isinstance(block, ToolResult)}
    assert (results["c1"].is_error, results["c2"].is_error) == (False, True)
    assert [media.data for media in results["c1"].media] == [b"\x89PNG-a-small-picture"]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_session_gives_the_same_bytes(
    session: StoredSession, name: str, tmp_path: Path
) -> None:
    talk(session)
    (tmp_path / "again").mkdir()

    first, second = told(session, name, tmp_path), told(session, name, tmp_path / "again")

    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", ["opencode", "copilot-cli", "gemini-cli"])
def test_a_call_of_the_model_is_told(session: StoredSession, name: str, tmp_path: Path) -> None:
    talk(session)

    path = told(session, name, tmp_path)

    first = next(step for step in FORMATS[name].read(Source(path)) if isinstance(step, Call))
    usage = first.fields["usage"]
    assert first.fields["model"] == "acme-1"
    assert usage.output == 12
    if name != "copilot-cli":  # it says nothing of prompts
        assert (usage.context, usage.reasoning) == (120, 4)


@pytest.mark.parametrize("name", NAMES)
def test_a_compacted_view_begins_with_the_summary_and_nobody_said_it(
    store: SessionStore, session: StoredSession, name: str, tmp_path: Path
) -> None:
    long_talk(session)
    compact(session)

    imported, report = again(store, told(session, name, tmp_path, view=True))

    first, *others = said(imported)
    assert first[0] == "developer"
    assert "Two boats leave." in first[1]
    assert others == said(session)
    assert report.errors == []


@pytest.mark.parametrize("name", NAMES)
def test_a_compaction_within_the_log_is_one_again(
    store: SessionStore, session: StoredSession, name: str, tmp_path: Path
) -> None:
    long_talk(session)
    compact(session)
    session.append(Block.user("and now?"))

    imported, report = again(store, told(session, name, tmp_path))

    assert report.compactions == 1
    view = imported.view()
    assert view.summary
    assert view.summary.text == "Two boats leave."
    assert said(imported)[-1] == ("user", "and now?", None)
    assert not any("Two boats" in text for _, text, _ in said(imported))


@pytest.mark.parametrize("path", FILES)
def test_what_cutbank_added_follows_what_the_agent_recorded(
    store: SessionStore, path: Path, tmp_path: Path
) -> None:
    (report,) = import_path(store, path)
    session = store.session(report.sessions[0], create=False)
    before = said(session)
    added: list[AnyBlock] = [
        Block.user("go on"),
        ToolCall(tool_call_id="n1", name="look", arguments={"at": "sea"}, message_id="n"),
        ToolResult(tool_call_id="n1", content="calm"),
        Block.assistant("it is calm"),
    ]
    session.append(*added)

    target = tmp_path / f"out{path.suffix}"
    assert report.format
    export(session, report.format, target)
    imported, again_report = again(store, target)

    expected = [*before, *((str(block.kind), block.text, _call_of(block)) for block in added)]
    assert _unabandoned(said(imported)) == _unabandoned(expected)
    assert len(again_report.errors) == len(report.errors)


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("name", NAMES)
def test_a_session_of_one_agent_is_told_as_one_of_another(
    store: SessionStore, path: Path, name: str, tmp_path: Path
) -> None:
    (report,) = import_path(store, path)
    if report.format == name:
        pytest.skip("the round trip is tested elsewhere")
    session = store.session(report.sessions[0], create=False)

    imported, after = again(store, told(session, name, tmp_path))

    refused = len(report.errors)
    assert after.tool_calls == report.tool_calls
    assert after.tool_results == report.tool_results - refused
    texts = "\n".join(text for _, text in _log(imported))
    assert all(text in texts for kind, text in _log(session) if kind in ("user", "assistant"))
    assert verify(store).ok


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("value", [None, 7, "x", [], {"x": 1}, 2**70])
def test_a_value_of_any_type_in_any_field_is_said_or_taken(
    path: Path, value: Any, tmp_path: Path
) -> None:
    """Whatever stands in a field, each entry ends once, and the others are read all the same."""
    found = recognise(Source(path))
    assert found
    for number, changed in enumerate(_changed(path, value)):
        target = tmp_path / f"{number}.json"
        target.write_bytes(changed)
        steps = list(found.read(Source(target)))

        ended = [step for step in steps if isinstance(step, EntryRead)]
        assert ended
        keys = [step.key for step in steps if isinstance(step, Append)]
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("path", FILES)
def test_what_is_cut_off_anywhere_does_not_break_the_reader(path: Path, tmp_path: Path) -> None:
    raw = path.read_bytes()
    found = recognise(Source(path))
    assert found
    for end in range(0, len(raw), max(1, len(raw) // 60)):
        target = tmp_path / path.name
        target.write_bytes(raw[:end])
        steps = list(found.read(Source(target)))
        assert all(not isinstance(step, EntryRead) or step.offset <= end for step in steps)


def _changed(path: Path, value: Any) -> list[bytes]:
    """The file, each time with another field's value changed."""
    lines = path.suffix == ".jsonl"
    raw = path.read_bytes()
    document = [json.loads(line) for line in raw.splitlines()] if lines else json.loads(raw)
    made = []
    for owner, field in list(_fields(document)):
        before = owner[field]
        owner[field] = value
        text = "\n".join(map(json.dumps, document)) if lines else json.dumps(document)
        made.append(text.encode())
        owner[field] = before
    return made


def _fields(value: Any) -> Any:
    waiting = [value]
    while waiting:
        owner = waiting.pop()
        pairs = owner.items() if isinstance(owner, dict) else enumerate(owner)
        for field, one in list(pairs):
            yield owner, field
            if isinstance(one, dict | list):
                waiting.append(one)


def _unabandoned(told: Said) -> Said:
    """Without what cutbank says in the place of results that will never come."""
    return [one for one in _as_objects(told) if not one[1].startswith("[abandoned: ")]


def _call_of(block: AnyBlock) -> str | None:
    return getattr(block, "tool_call_id", None)


def _as_objects(told: Said) -> Said:
    """Arguments of calls as what they say: spelling is the format's own."""
    return [
        (kind, _spelt(text) if kind == "tool_call" else text, call) for kind, text, call in told
    ]


def _spelt(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments))
    except ValueError:
        return arguments


def _log(session: StoredSession) -> list[tuple[str, str]]:
    """All that was said, whatever was compacted since, but for what was taken back."""
    said_of = outgoing_of(session).view.entries
    return [(str(entry.block.kind), entry.block.text) for entry in said_of]
