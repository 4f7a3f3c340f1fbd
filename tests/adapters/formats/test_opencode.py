"""What an export of opencode becomes, one rule a test."""

import json
from pathlib import Path
from typing import Any

import pytest
from claude_code_talk import Reading
from told_elsewhere import again, said
from transcripts import SAMPLES

from cutbank import SessionStore
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.opencode import FORMAT
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import Aside, Begin, Call, Compacted, Linked, Rewind
from cutbank.adapters.transcripts.formats.summary_mark import MARK
from cutbank.domain.blocks import ToolCall, ToolResult
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Usage
from cutbank.projections.rendering import summary_message

HARBOUR = SAMPLES / "opencode" / "harbour.json"
CREW = SAMPLES / "opencode" / "crew.json"

Item = dict[str, Any]


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


def reading(path: Path) -> Reading:
    return Reading(list(FORMAT.read(Source(path))))


def exported(path: Path, *messages: Item) -> Path:
    """An export of these messages."""
    info = {"id": "ses_1", "directory": "/", "title": "t", "time": {"created": 1}}
    path.write_text(json.dumps({"info": info, "messages": messages}))
    return path


def message(id: str, role: str, *parts: Item, **info: Any) -> Item:
    named = [{"id": f"{id}-{number}"} | part for number, part in enumerate(parts)]
    return {"info": {"id": id, "role": role} | info, "parts": named}


def text(text: str, **more: Any) -> Item:
    return {"type": "text", "text": text} | more


def tool(status: str, call: str = "c1", **state: Any) -> Item:
    whole = {"status": status, "input": {"at": "sea"}} | state
    return {"type": "tool", "tool": "look", "callID": call, "state": whole}


def test_the_sample_becomes_these_blocks() -> None:
    found = reading(HARBOUR)

    assert [kind for kind, _ in found.said] == [
        *("user", "image", "developer"),
        *("thinking", "assistant", "tool_call", "tool_result", "tool_call", "tool_result"),
        *("tool_call", "tool_result", "tool_call", "tool_result", "assistant"),
        *("developer", "thinking", "assistant", "assistant"),
        *("user", "tool_call"),
    ]
    assert found.of(Begin) == [Begin("ses_harbour", title="Boats of today", project="/boats")]


def test_a_compaction_keeps_what_the_source_says_it_kept() -> None:
    (compacted,) = reading(HARBOUR).of(Compacted)

    assert compacted.trigger is Trigger.THRESHOLD
    assert compacted.summary == "## Goal\nThe boats of today: the Petrel and the Tern."
    kept = json.loads(HARBOUR.read_bytes())["messages"][2]["parts"]
    assert compacted.kept == tuple(part["id"] for part in kept)


def test_a_summary_with_nothing_before_it_is_a_developers(tmp_path: Path) -> None:
    asked = message("m1", "user", {"type": "compaction", "auto": False})
    summary = message("m2", "assistant", text("so far"), summary=True, finish="stop", parentID="m1")

    found = reading(exported(tmp_path / "a.json", asked, summary))

    assert found.said == [("developer", "so far")]
    assert found.of(Compacted) == []


def test_a_summary_that_was_not_finished_is_none(tmp_path: Path) -> None:
    asked = message("m2", "user", {"type": "compaction", "auto": True})
    broken = message("m3", "assistant", text("so f"), summary=True, parentID="m2")

    found = reading(exported(tmp_path / "a.json", message("m1", "user", text("go")), asked, broken))

    assert found.of(Compacted) == []
    assert found.said == [("user", "go")]


def test_usage_is_told_of_each_step_and_the_cache_apart() -> None:
    calls = reading(HARBOUR).of(Call)

    usage = Usage(input=120, cache_read=40, cache_write=0, output=35, reasoning=5)
    assert calls[0].fields["usage"] == usage
    assert calls[0].fields["cost_usd"] == 0.0125
    assert [call.fields["call_id"] for call in calls[-2:]] == ["msg_007", "msg_007#1"]
    assert len(calls) == 5


def test_a_task_links_its_call_to_the_sub_agent_and_a_revert_is_a_rewind() -> None:
    assert reading(HARBOUR).of(Linked) == [Linked("ses_crew", "ses_harbour", "call_4")]
    found = reading(CREW)
    assert found.of(Begin)[0].parent_key == "ses_harbour"
    last_kept = json.loads(CREW.read_bytes())["messages"][2]["parts"][-1]["id"]
    assert [step.to for step in found.of(Rewind)] == [last_kept]
    assert found.live == ["Ask who sails.", "Once more."]


def test_a_reasoning_part_goes_back_to_its_provider() -> None:
    signed, sealed = (block.native for block in reading(HARBOUR).blocks if block.native)

    assert signed.provider == "anthropic"
    assert json.loads(signed.item)["signature"] == "c2lnbmVk"
    assert sealed.provider == "openai-responses"
    assert json.loads(sealed.item)["encrypted_content"] == "c2VhbGVk"


def test_a_result_of_several_parts_keeps_their_order_and_bytes() -> None:
    results = [block for block in reading(HARBOUR).blocks if isinstance(block, ToolResult)]

    assert [result.is_error for result in results] == [False, True, False, False]
    assert results[2].text == "An image was read"
    assert results[2].media[0].data.startswith(b"\x89PNG")


def test_no_text_is_stored_twice() -> None:
    found = reading(HARBOUR)

    rests = "".join(block.origin.entry or "" for block in found.blocks if block.origin)
    raws = "".join(step.raw for step in found.of(Aside))
    assert "Petrel 09:00" not in rests + raws
    assert "iVBOR" not in rests + raws


def test_a_call_that_waits_is_answered_when_the_export_grew(
    store: SessionStore, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    prompt = message("m1", "user", text("go"))
    exported(path, prompt, message("m2", "assistant", tool("running")))
    (first,) = import_path(store, path)
    done = tool("completed", output="calm", title="look", metadata={"n": 1})
    grown = message("m2", "assistant", done, time={"completed": 9})
    exported(path, prompt, grown, message("m3", "assistant", text("it is calm")))

    (second,) = import_path(store, path)

    session = store.session("ses_1", create=False)
    assert (first.added, second.errors) == (5, [])
    assert [one[1] for one in said(session)] == ["go", '{"at":"sea"}', "calm", "it is calm"]
    export(session, "opencode", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_bytes()) == json.loads(path.read_bytes())


def test_calls_of_one_id_are_told_apart_while_they_wait(
    store: SessionStore, tmp_path: Path
) -> None:
    calls = message("m1", "assistant", tool("running"), tool("completed", output="calm"))
    path = exported(tmp_path / "a.json", calls)

    imported, report = again(store, path)

    assert report.errors == []
    blocks = [entry.block for entry in imported.view().entries]
    ids = [block.tool_call_id for block in blocks if isinstance(block, ToolCall)]
    assert len(set(ids)) == 2


def test_a_summary_that_cutbank_exported_is_recognised(tmp_path: Path) -> None:
    marked = summary_message.wrapped("so far", Ranges.span(1, 9))
    first = exported(tmp_path / "a.json", message("m1", "user", text(marked, **MARK)))
    assert [kind for kind, _ in reading(first).said] == ["developer"]

    prompt = message("m0", "user", text("go"))
    second = exported(tmp_path / "b.json", prompt, message("m1", "user", text(marked, **MARK)))
    (compacted,) = reading(second).of(Compacted)
    assert compacted.summary == "so far"

    pasted = exported(tmp_path / "c.json", prompt, message("m1", "user", text(marked)))
    assert reading(pasted).said[-1] == ("user", marked)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (7, "parts: expected an object"),
        ({"type": "text"}, "text: expected text, but it is missing"),
        ({"type": "tool", "tool": "x", "callID": "c"}, "state: expected an object"),
        (tool("flying"), "state.status: 'flying' is not known"),
        (tool("completed"), "state.output: expected text, but it is missing"),
        ({"type": "file", "mime": "image/png", "url": "data:;base64,&&"}, "url: not base64"),
    ],
)
def test_a_part_that_is_wrong_says_why_and_the_rest_is_read(
    tmp_path: Path, part: Any, reason: str
) -> None:
    odd = message("m1", "assistant")
    odd["parts"] = [part, text("on")]

    found = reading(exported(tmp_path / "a.json", odd))

    assert found.outcomes == ["imported", "imported", "error", "imported"]
    assert reason in found.reasons[0]
    assert found.said[-1] == ("assistant", "on")
