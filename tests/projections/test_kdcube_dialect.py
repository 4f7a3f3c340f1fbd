"""kdcube's words for what no vector shows: paths hidden twice, live blocks, results of no call."""

import json

import pytest
from dialects import kdcube

from cutbank.domain import kdcube_timeline
from cutbank.domain.blocks import AnyBlock, Block, Kind, Origin, ToolCall, ToolResult
from cutbank.domain.item import Item


def hidden(path: str, replacement: str) -> Block:
    entry = {
        "type": "react.tool.result",
        "path": path,
        "meta": {"hidden": True, "replacement_text": replacement},
    }
    origin = Origin(format="kdcube", entry=json.dumps(entry))
    return Block(kind=Kind.NOTE, text="long", origin=origin)


def items(*blocks: AnyBlock) -> list[Item]:
    return [Item(position=at, block=block, turn=1, tokens=1) for at, block in enumerate(blocks, 1)]


def test_of_a_hidden_path_only_the_first_block_shows_its_text() -> None:
    blocks = items(
        Block.user("u"),
        hidden("fi:a", "[a]"),
        hidden("fi:a", "[a]"),
        hidden("", "[b]"),
        hidden("fi:c", " "),
        hidden("fi:c", "[c]"),
        Block.assistant("a"),
    )

    rendered = kdcube.rendered(blocks)

    assert [item.position for item in rendered] == [1, 2, 7]


def test_live_blocks_are_told_by_their_kinds_and_turns() -> None:
    block = kdcube.summary_block("SUM", "turn_2", items(Block.user("u")), split_turn=None)

    assert block["meta"]["covered_turn_ids"] == ["turn_1"]
    assert block["path"] == "su:turn_2.conv.range.summary"
    assert "split_turn_id" not in block["meta"]


def test_an_artifact_is_told_once_and_without_its_call_by_no_tool() -> None:
    told = json.dumps({"physical_path": "out/a.pdf", "visibility": "external", "kind": "file"})
    found = kdcube.digest(
        items(
            ToolResult(tool_call_id="gone", content=told),
            ToolCall(tool_call_id="c", name="infra.write"),
            ToolResult(tool_call_id="c", content=told),
            ToolResult(tool_call_id="d", content='{"artifact_path": '),
            ToolResult(tool_call_id="e", content='["artifact_path"]'),
        )
    )

    (artifact,) = found["artifacts"]
    assert (artifact["physical_path"], artifact["tool_id"]) == ("out/a.pdf", "")
    assert found["streamed_artifacts"] == [artifact]
    assert found["written_files"] == []


def test_a_saved_summary_has_a_time_and_says_what_it_covers() -> None:
    gone = items(Block.user("u"), Block.assistant("a"))
    block = kdcube.summary_block("SUM", "turn_1", gone, split_turn="turn_1")

    saved = kdcube.save_summary(block, gone, created_at="2026-01-01T00:00:00Z")

    assert (saved["created_at"], saved["blocks_count"]) == ("2026-01-01T00:00:00Z", 2)
    assert (saved["split_turn"], saved["split_turn_id"]) == (True, "turn_1")


@pytest.mark.parametrize("entry", ["", "no json", "[1]", '{"meta": 3}', "{}", None])
def test_an_entry_that_says_nothing_leaves_the_block_to_speak(entry: str | None) -> None:
    block = Block.user("u").model_copy(update={"origin": Origin(format="kdcube", entry=entry)})

    assert kdcube_timeline.type_of(block) == "user.prompt"
    assert kdcube_timeline.shown(block) == "u"
    assert not kdcube_timeline.is_hidden(block)
    assert kdcube_timeline.replacement_of(block) == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"a": "é"}', '{"tool_id": "t", "tool_call_id": "c", "params": {"a": "\\u00e9"}}'),
        ("é", '{"tool_id": "t", "tool_call_id": "c", "params": "\\u00e9"}'),
        ("{}", '{"tool_id": "t", "tool_call_id": "c", "params": {}}'),
    ],
)
def test_a_call_is_the_json_that_the_timeline_holds(arguments: str, text: str) -> None:
    assert kdcube_timeline.text_of(ToolCall(tool_call_id="c", name="t", arguments=arguments)) == text
