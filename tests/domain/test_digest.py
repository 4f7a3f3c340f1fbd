"""The digest is exact: what calls did by name and result, and nothing that was only said."""

import json

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.compaction_events import Digest
from cutbank.domain.digest import build_digest, find_touched_files, normalize_tool_name
from cutbank.domain.item import Item

PATCH = """*** Begin Patch
*** Update File: src/a.py
@@
-x = 1
+x = 2
*** Add File: src/new.py
+y = 1
*** Delete File: old.py
*** Update File: from.py
*** Move to: to.py
*** End Patch
"""


PATCHED = ("src/a.py", "src/new.py", "old.py", "from.py", "to.py")
SCRIPT = f"const patch = {json.dumps(PATCH)};\nawait tools.apply_patch(patch);"


def called(name: str, **arguments: JsonValue) -> ToolCall:
    return ToolCall(tool_call_id="c", name=name, arguments=json.dumps(arguments))


def items(*blocks: AnyBlock) -> list[Item]:
    return [Item(position, block, turn=1, tokens=1) for position, block in enumerate(blocks, 1)]


def test_a_reading_tool_reads_the_files_that_it_names() -> None:
    rows: list[tuple[ToolCall, tuple[str, ...]]] = [
        (called("Read", file_path="a.py"), ("a.py",)),
        (called("read_file", absolute_path="/x/a.py"), ("/x/a.py",)),
        (called("view", path="a.py"), ("a.py",)),
        (called("cat", filename="a.py"), ("a.py",)),
        (called("NotebookRead", notebook_path="a.ipynb"), ("a.ipynb",)),
        (called("read_many_files", paths=["a.py", "b.py"]), ("a.py", "b.py")),
        (called("mcp__files__read_text_file", path="a.py"), ("a.py",)),
        (called("str_replace_editor", command="view", path="a.py"), ("a.py",)),
    ]

    assert not [(call, paths) for call, paths in rows if find_touched_files(call) != (paths, False)]


def test_a_writing_tool_modifies_the_files_that_it_names() -> None:
    rows: list[tuple[ToolCall, tuple[str, ...]]] = [
        (called("Write", file_path="a.py", content="x"), ("a.py",)),
        (called("edit", filePath="a.py", oldString="x"), ("a.py",)),
        (called("MultiEdit", file_path="a.py", edits=[]), ("a.py",)),
        (called("NotebookEdit", notebook_path="a.ipynb"), ("a.ipynb",)),
        (called("create", path="a.py"), ("a.py",)),
        (called("str_replace", path="a.py"), ("a.py",)),
        (called("str_replace_based_edit_tool", command="insert", path="a.py"), ("a.py",)),
        (called("functions.replace", file_path="a.py"), ("a.py",)),
        (called("move_file", source="a.py", destination="b.py"), ("a.py", "b.py")),
        (called("apply_patch", input=PATCH), PATCHED),
        (ToolCall(tool_call_id="c", name="apply_patch", arguments=PATCH), PATCHED),
        (ToolCall(tool_call_id="c", name="exec", arguments=SCRIPT), PATCHED),
        (called("patch", diff="--- a/x.py\n+++ b/x.py\n@@\n"), ("x.py",)),
        (called("patch", diff="--- /dev/null\n+++ b/new.py\n@@\n"), ("new.py",)),
        (called("shell", command=["apply_patch", PATCH]), PATCHED),
    ]

    assert not [(call, paths) for call, paths in rows if find_touched_files(call) != (paths, True)]


def test_what_names_no_file_touches_none() -> None:
    rows: list[ToolCall] = [
        called("Grep", pattern="x", path="src"),
        called("Bash", command="cat a.py > b.py"),
        called("bash", command="echo '*** Begin Patch' # not applied"),
        called("Read", limit=3),
        called("Read", file_path=" "),
        called("Write", file_path={"deep": {"path": ["no"]}}),
        ToolCall(tool_call_id="c", name="Write", arguments="file_path: a.py"),
        ToolCall(tool_call_id="c", name="Write", arguments='["a.py"]'),
        ToolCall(tool_call_id="c", name="Read", arguments='{"file_path":' + "[" * 100_000),
    ]

    assert not [call for call in rows if find_touched_files(call).paths != ()]


def test_a_tool_is_known_whatever_its_spelling() -> None:
    spellings = ["Read_File", "read-file", "ReadFile", "mcp__x__read_file", "fs.readFile"]

    assert {normalize_tool_name(name) for name in (*spellings, "ReadFileTool")} == {"readfile"}


def test_a_digest_adds_up_with_the_one_before() -> None:
    before = Digest(read_files=("a.py", "z.py"), modified_files=("m.py",))

    after = build_digest(
        items(called("Read", file_path="b.py"), called("Write", file_path="a.py")), before
    )

    # A modified file is not listed as read.
    assert after.read_files == ("b.py", "z.py")
    assert after.modified_files == ("a.py", "m.py")


def test_a_call_whose_own_result_is_an_error_did_nothing() -> None:
    refused = ToolResult(tool_call_id="c", content="no", is_error=True)
    accepted = ToolResult(tool_call_id="c", content="done")
    first, second = called("Edit", file_path="a.py"), called("Edit", file_path="b.py")

    digest = build_digest(items(first, accepted, second, refused), Digest())

    assert digest.modified_files == ("a.py",)
    assert build_digest(items(first), Digest()).modified_files == (
        "a.py",
    )  # its result is elsewhere


def test_what_is_only_said_is_no_inventory() -> None:
    said = items(Block.assistant("I edited a.py"), Block.user("read b.py"))

    assert build_digest(said, Digest()) == Digest()


def test_what_a_later_version_wrote_is_kept() -> None:
    before = Digest.model_validate({"deployments": ["make"]})

    assert build_digest((), before).model_extra == {"deployments": ["make"]}


@given(st.text(), st.text() | st.text("{}[]\"'*: \\nfile_path").map('{"path":'.__add__))
def test_any_call_can_be_read(name: str, arguments: str) -> None:
    find_touched_files(ToolCall(tool_call_id="c", name=name, arguments=arguments))
