"""The digest is exact: what calls did by name and result, and nothing that was only said."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.compaction_events import Digest
from cutbank.domain.digest import bare_name, digest_of, touched
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


def called(name: str, **arguments: JsonValue) -> ToolCall:
    return ToolCall(tool_call_id="c", name=name, arguments=json.dumps(arguments))


def items(*blocks: AnyBlock) -> list[Item]:
    return [Item(position, block, turn=1, tokens=1) for position, block in enumerate(blocks, 1)]


@pytest.mark.parametrize(
    ("call", "paths"),
    [
        (called("Read", file_path="a.py"), ("a.py",)),
        (called("read_file", absolute_path="/x/a.py"), ("/x/a.py",)),
        (called("view", path="a.py"), ("a.py",)),
        (called("cat", filename="a.py"), ("a.py",)),
        (called("NotebookRead", notebook_path="a.ipynb"), ("a.ipynb",)),
        (called("read_many_files", paths=["a.py", "b.py"]), ("a.py", "b.py")),
        (called("mcp__files__read_text_file", path="a.py"), ("a.py",)),
        (called("str_replace_editor", command="view", path="a.py"), ("a.py",)),
    ],
)
def test_a_reading_tool_reads_the_files_that_it_names(
    call: ToolCall, paths: tuple[str, ...]
) -> None:
    assert touched(call) == (paths, False)


@pytest.mark.parametrize(
    ("call", "paths"),
    [
        (called("Write", file_path="a.py", content="x"), ("a.py",)),
        (called("edit", filePath="a.py", oldString="x"), ("a.py",)),
        (called("MultiEdit", file_path="a.py", edits=[]), ("a.py",)),
        (called("NotebookEdit", notebook_path="a.ipynb"), ("a.ipynb",)),
        (called("create", path="a.py"), ("a.py",)),
        (called("str_replace", path="a.py"), ("a.py",)),
        (called("str_replace_based_edit_tool", command="insert", path="a.py"), ("a.py",)),
        (called("functions.replace", file_path="a.py"), ("a.py",)),
        (called("move_file", source="a.py", destination="b.py"), ("a.py", "b.py")),
        (
            called("apply_patch", input=PATCH),
            ("src/a.py", "src/new.py", "old.py", "from.py", "to.py"),
        ),
        (called("patch", diff="--- a/x.py\n+++ b/x.py\n@@\n"), ("x.py",)),
        (called("patch", diff="--- /dev/null\n+++ b/new.py\n@@\n"), ("new.py",)),
        (
            called("shell", command=["apply_patch", PATCH]),
            ("src/a.py", "src/new.py", "old.py", "from.py", "to.py"),
        ),
    ],
)
def test_a_writing_tool_modifies_the_files_that_it_names(
    call: ToolCall, paths: tuple[str, ...]
) -> None:
    assert touched(call) == (paths, True)


def test_a_patch_may_be_the_whole_of_the_arguments() -> None:
    call = ToolCall(tool_call_id="c", name="apply_patch", arguments=PATCH)

    assert touched(call).paths == ("src/a.py", "src/new.py", "old.py", "from.py", "to.py")


def test_a_patch_may_be_a_string_in_a_script() -> None:
    script = f"const patch = {json.dumps(PATCH)};\nawait tools.apply_patch(patch);"

    touch = touched(ToolCall(tool_call_id="c", name="exec", arguments=script))

    assert touch.modifies
    assert touch.paths[:2] == ("src/a.py", "src/new.py")


@pytest.mark.parametrize(
    "call",
    [
        called("Grep", pattern="x", path="src"),
        called("Bash", command="cat a.py > b.py"),
        called("bash", command="echo '*** Begin Patch' # not applied"),
        called("Read", limit=3),
        called("Read", file_path=" "),
        called("Write", file_path={"deep": {"path": ["no"]}}),
        ToolCall(tool_call_id="c", name="Write", arguments="file_path: a.py"),
        ToolCall(tool_call_id="c", name="Write", arguments='["a.py"]'),
        ToolCall(tool_call_id="c", name="Read", arguments='{"file_path":' + "[" * 100_000),
    ],
)
def test_what_names_no_file_touches_none(call: ToolCall) -> None:
    assert touched(call).paths == ()


def test_a_tool_is_known_whatever_its_spelling() -> None:
    spellings = [
        "Read_File",
        "read-file",
        "ReadFile",
        "mcp__x__read_file",
        "fs.readFile",
        "ReadFileTool",
    ]

    assert {bare_name(spelling) for spelling in spellings} == {"readfile"}


def test_a_modified_file_is_not_listed_as_read() -> None:
    digest = digest_of(
        items(called("Read", file_path="a.py"), called("Edit", file_path="a.py")), Digest()
    )

    assert digest == Digest(modified_files=("a.py",))


def test_a_digest_adds_up_with_the_one_before() -> None:
    before = Digest(read_files=("a.py", "z.py"), modified_files=("m.py",))

    after = digest_of(
        items(called("Read", file_path="b.py"), called("Write", file_path="a.py")), before
    )

    assert after.read_files == ("b.py", "z.py")
    assert after.modified_files == ("a.py", "m.py")


def test_a_call_whose_result_is_an_error_did_nothing() -> None:
    refused = ToolResult(tool_call_id="c", content="no", is_error=True)

    digest = digest_of(items(called("Edit", file_path="a.py"), refused), Digest())

    assert digest == Digest()


def test_a_result_belongs_to_the_newest_call_of_its_name() -> None:
    refused = ToolResult(tool_call_id="c", content="no", is_error=True)
    accepted = ToolResult(tool_call_id="c", content="done")
    first, second = called("Edit", file_path="a.py"), called("Edit", file_path="b.py")

    digest = digest_of(items(first, accepted, second, refused), Digest())

    assert digest.modified_files == ("a.py",)


def test_a_call_whose_result_is_elsewhere_counts() -> None:
    assert digest_of(items(called("Edit", file_path="a.py")), Digest()).modified_files == ("a.py",)


def test_what_is_only_said_is_no_inventory() -> None:
    said = items(Block.assistant("I edited a.py"), Block.user("read b.py"))

    assert digest_of(said, Digest()) == Digest()


def test_what_a_later_version_wrote_is_kept() -> None:
    before = Digest.model_validate({"deployments": ["make"]})

    assert digest_of((), before).model_extra == {"deployments": ["make"]}


@given(st.text(), st.text() | st.text("{}[]\"'*: \\nfile_path").map('{"path":'.__add__))
def test_any_call_can_be_read(name: str, arguments: str) -> None:
    touched(ToolCall(tool_call_id="c", name=name, arguments=arguments))
