"""The inventory is exact and adds up: artifacts, commands, memory, and what was hidden."""

import json

from cutbank.domain.blocks import AnyBlock, ToolCall, ToolResult
from cutbank.domain.compaction_events import Digest, HiddenBlock
from cutbank.domain.digest import build_inventory
from cutbank.domain.item import Item
from cutbank.domain.ranges import Ranges


def items(*blocks: AnyBlock, begins: int = 1) -> list[Item]:
    return [
        Item(position=at, block=block, turn=1, tokens=1) for at, block in enumerate(blocks, begins)
    ]


def made(path: str, begins: int) -> list[Item]:
    told = json.dumps({"artifact_path": path, "sources_used": [1]})
    call = ToolCall(tool_call_id="c", name="draw")
    return items(call, ToolResult(tool_call_id="c", content=told), begins=begins)


def test_it_adds_to_what_was_counted_before() -> None:
    first = build_inventory(made("a", 1), Digest(), [HiddenBlock(position=9)])
    second = build_inventory(made("b", 3), first, [HiddenBlock(position=5, replacement="[five]")])

    assert [(one.path, one.position, one.tool) for one in second.artifacts] == [
        ("a", 2, "draw"),
        ("b", 4, "draw"),
    ]
    assert [(one.position, one.replacement) for one in second.hidden] == [(5, "[five]"), (9, None)]


def test_of_a_path_that_was_made_again_the_newest_result_is_told() -> None:
    digest = build_inventory(made("a", 3), build_inventory(made("a", 1), Digest()))

    assert [(one.path, one.position) for one in digest.artifacts] == [("a", 4)]


def test_an_artifact_is_listed_once_and_without_its_call_by_no_tool() -> None:
    told = json.dumps({"physical_path": "out/a.pdf", "visibility": "external"})
    answers = items(
        ToolResult(tool_call_id="gone", content=told),
        ToolCall(tool_call_id="c", name="infra.write"),
        ToolResult(tool_call_id="c", content=told),
        ToolResult(tool_call_id="d", content='{"artifact_path": '),
        ToolResult(tool_call_id="e", content='["artifact_path"]'),
    )

    (artifact,) = build_inventory(answers, Digest()).artifacts

    assert (artifact.path, artifact.tool, artifact.visibility) == ("out/a.pdf", None, "external")


def test_commands_are_named_by_their_calls() -> None:
    calls = items(
        ToolCall(tool_call_id="1", name="Bash", arguments={"command": "ls"}),
        ToolCall(tool_call_id="2", name="read", arguments={"path": "a"}),
        ToolCall(tool_call_id="3", name="mcp__local__run_command"),
    )

    first = build_inventory(calls, Digest())
    second = build_inventory(items(ToolCall(tool_call_id="4", name="bash"), begins=4), first)

    assert (first.commands, second.commands) == (Ranges.of([1, 3]), Ranges.of([4]))


def test_a_memory_that_was_not_answered_or_found_nothing_is_told_as_such() -> None:
    calls = items(
        ToolCall(tool_call_id="1", name="memory_read", arguments={"query": "never answered"}),
        ToolCall(tool_call_id="2", name="search_memory", arguments={"query": "nothing"}),
        ToolResult(tool_call_id="2", content="no hits"),
    )

    (read,) = build_inventory(calls, Digest()).memory_reads
    assert (read.position, read.query, read.hits, read.paths) == (2, "nothing", 0, ())


def test_a_digest_of_before_there_was_more_is_read_as_it_is() -> None:
    old = Digest.model_validate({"read_files": ["a"], "modified_files": []})

    assert (old.artifacts, old.commands, old.hidden) == ((), Ranges(), ())
    assert Digest.model_validate_json(old.model_dump_json()) == old
