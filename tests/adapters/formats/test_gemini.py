"""What sessions of Gemini CLI and histories of the Gemini API become, one rule a test."""

import json
from pathlib import Path
from typing import Any

import pytest
from claude_code_talk import Reading
from told_elsewhere import said
from transcripts import SAMPLES

from cutbank import SessionStore
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.gemini import gemini_cli, gemini_history
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import Aside, Begin, Call, Compacted
from cutbank.adapters.transcripts.formats.summary_mark import MARK
from cutbank.domain.blocks import ToolResult
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Usage
from cutbank.projections.rendering import summary_message

RECORDED = SAMPLES / "gemini-cli" / "harbour.json"
HISTORY = SAMPLES / "gemini-history" / "harbour.json"

Item = dict[str, Any]


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


def recorded(path: Path, *messages: Any) -> Path:
    whole = {"sessionId": "s1", "projectHash": "p", "startTime": "t", "messages": messages}
    path.write_text(json.dumps(whole))
    return path


def reading(path: Path) -> Reading:
    return Reading(list(gemini_cli.read(Source(path))))


def contents(path: Path, *told: Any) -> Reading:
    path.write_text(json.dumps(told))
    return Reading(list(gemini_history.read(Source(path))))


def user(text: str) -> Item:
    return {"role": "user", "parts": [{"text": text}]}


def model(*parts: Item) -> Item:
    return {"role": "model", "parts": list(parts)}


# Sessions of Gemini CLI


def test_the_sample_becomes_these_blocks() -> None:
    found = reading(RECORDED)

    assert [kind for kind, _ in found.said] == [
        *("user", "thinking", "assistant"),
        *("tool_call", "tool_result") * 4,
        *("tool_call", "developer", "user", "image", "document", "assistant"),
    ]
    assert found.of(Begin)[0].title == "Boats of today"
    assert found.blocks[1].text == "**Looking**\n\nTwo lists could say so."


def test_tokens_of_a_prompt_are_told_without_those_of_the_cache() -> None:
    call, *_ = reading(RECORDED).of(Call)

    usage = Usage(input=105, cache_read=400, output=50, reasoning=30)
    assert (call.fields["model"], call.fields["usage"]) == ("gemini-2.5-flash", usage)


def test_a_response_is_the_text_that_it_is_or_json() -> None:
    results = [block for block in reading(RECORDED).blocks if isinstance(block, ToolResult)]

    assert [(one.text, one.is_error) for one in results] == [
        ("Petrel 09:00\nTern 11:30", False),
        ("no such file", True),
        ("an image", False),
        ('{"boats":2}', False),
    ]
    assert results[2].media[0].data.startswith(b"\x89PNG")


def test_nothing_that_a_block_holds_is_kept_again() -> None:
    found = reading(RECORDED)

    rests = "".join(block.origin.entry or "" for block in found.blocks if block.origin)
    raws = "".join(step.raw for step in found.of(Aside))
    for text in ("Petrel 09:00", "Two lists", "I look at the lists", "iVBOR"):
        assert text not in rests + raws


def test_a_message_that_grew_adds_what_is_new_and_goes_out_as_it_is_now(
    store: SessionStore, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    call = {"id": "c1", "name": "look", "args": {}, "status": "executing"}
    message = {"id": "g1", "type": "gemini", "content": "I look", "toolCalls": [call]}
    import_path_of(store, recorded(path, message))
    response = {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "calm"}}}
    done = call | {"status": "success", "result": [response]}
    second = call | {"id": "c2"}
    grown = message | {"toolCalls": [done, second], "tokens": {"input": 9, "output": 1}}
    import_path_of(store, recorded(path, grown))

    session = store.session("s1", create=False)
    assert [one[1] for one in said(session)] == ["I look", "{}", "calm", "{}"]
    export(session, "gemini-cli", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_bytes()) == json.loads(path.read_bytes())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"type": 7}, "type: expected text, got a whole number"),
        ({"content": 7}, "content: expected a list, got a whole number"),
        ({"thoughts": [7]}, "thoughts[0]: expected an object"),
        ({"toolCalls": [7]}, "toolCalls[0]: expected an object"),
        ({"toolCalls": [{"name": "x", "result": [7]}]}, "toolCalls[0]: result[0]: not a part"),
        ({"tokens": {"input": "many"}}, "tokens.input: expected a whole number, got text"),
    ],
)
def test_a_message_that_is_wrong_says_why_and_the_rest_is_read(
    tmp_path: Path, change: Item, reason: str
) -> None:
    odd = {"id": "g1", "type": "gemini", "content": "hm"} | change
    next_one = {"id": "g2", "type": "user", "content": "on"}

    found = reading(recorded(tmp_path / "a.json", odd, next_one))

    assert found.outcomes == ["imported", "error", "imported"]
    assert reason in found.reasons[0]
    assert found.said[-1] == ("user", "on")


# Histories


def test_the_history_becomes_these_blocks() -> None:
    found = Reading(list(gemini_history.read(Source(HISTORY))))

    assert [kind for kind, _ in found.said] == [
        *("developer", "developer", "assistant", "user", "image"),
        *("thinking", "assistant", "tool_call", "tool_call", "tool_call"),
        *("tool_result", "tool_result", "tool_result", "tool_result"),
        *("note", "note", "assistant", "user", "tool_call"),
    ]
    assert found.of(Compacted) == []


def test_calls_without_an_id_are_answered_in_their_order(tmp_path: Path) -> None:
    call = {"functionCall": {"name": "look", "args": {"at": 1}}}
    other = {"functionCall": {"name": "look", "args": {"at": 2}}}
    answer = [{"functionResponse": {"name": "look", "response": {"output": text}}} for text in "ab"]

    found = contents(
        tmp_path / "a.json", user("go"), model(call, other), {"role": "user", "parts": answer}
    )

    ids = [getattr(block, "tool_call_id", None) for block in found.blocks[1:]]
    assert ids[:2] == ids[2:]
    assert len(set(ids)) == 2


def test_a_history_is_known_by_how_it_begins(tmp_path: Path) -> None:
    begins = [user("go"), model({"text": "yes"})]

    first = contents(tmp_path / "a.json", *begins).of(Begin)
    grown = contents(tmp_path / "b.json", *begins, user("on")).of(Begin)
    other = contents(tmp_path / "c.json", user("go"), model({"text": "no"})).of(Begin)

    assert first == grown != other


def test_a_summary_that_cutbank_exported_is_recognised(tmp_path: Path) -> None:
    pasted = user(summary_message.wrapped("so far", Ranges.span(1, 9)))
    marked = {"role": "user", "parts": [pasted["parts"][0] | MARK]}

    first = contents(tmp_path / "a.json", marked, model({"text": "yes"}))
    later = contents(tmp_path / "b.json", user("go"), marked)

    assert [kind for kind, _ in first.said] == ["developer", "assistant"]
    assert [step.summary for step in later.of(Compacted)] == ["so far"]
    forged = contents(tmp_path / "c.json", user("go"), pasted)
    assert [kind for kind, _ in forged.said] == ["user", "user"]


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (7, "parts[0]: expected an object"),
        ({"text": 7}, "parts[0]: text: expected text, got a whole number"),
        ({"functionCall": {}}, "parts[0]: functionCall.name: expected text, but it is missing"),
        ({"functionResponse": {"name": "x"}}, "functionResponse.response: expected an object"),
    ],
)
def test_a_part_that_is_wrong_says_why_and_the_rest_is_read(
    tmp_path: Path, part: Any, reason: str
) -> None:
    found = contents(tmp_path / "a.json", model(part, {"text": "on"}), user("go"))

    assert found.outcomes == ["error", "imported"]
    assert reason in found.reasons[0]
    assert found.said == [("assistant", "on"), ("user", "go")]


def import_path_of(store: SessionStore, path: Path) -> None:
    (report,) = import_path(store, path)
    assert report.errors == []
