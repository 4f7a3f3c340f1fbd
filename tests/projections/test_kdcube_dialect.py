"""kdcube's words for what no vector shows: paths hidden twice, live blocks, results of no call."""

import json

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
    whole = kdcube.summary_block("SUM", "turn_2", items(Block.user("u")), split_turn=None)
    assert whole["meta"]["covered_turn_ids"] == ["turn_1"]
    assert whole["path"] == "su:turn_2.conv.range.summary"
    assert "split_turn_id" not in whole["meta"]


def test_an_entry_that_says_nothing_leaves_the_block_to_speak() -> None:
    for entry in ("", "no json", "[1]", '{"meta": 3}', "{}", None):
        block = Block.user("u").model_copy(update={"origin": Origin(format="kdcube", entry=entry)})

        assert (kdcube_timeline.find_type(block), kdcube_timeline.render_shown_text(block)) == (
            "user.prompt",
            "u",
        ), entry
        assert (
            kdcube_timeline.is_hidden_entry(block),
            kdcube_timeline.find_replacement(block),
        ) == (False, ""), entry


def test_a_call_is_the_json_that_the_timeline_holds() -> None:
    for arguments, params in (('{"a": "é"}', '{"a": "\\u00e9"}'), ("é", '"\\u00e9"'), ("{}", "{}")):
        call = ToolCall(tool_call_id="c", name="t", arguments=arguments)
        text = f'{{"tool_id": "t", "tool_call_id": "c", "params": {params}}}'
        assert kdcube_timeline.render_entry_text(call) == text
