"""What removed calls did, exactly: files, artifacts, commands, memory, and what was hidden."""

import json

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from cutbank import Block, Ranges, ToolCall, ToolResult, WindowItem
from cutbank.domain.blocks import AnyBlock
from cutbank.domain.compaction_events import Digest, HiddenBlock
from cutbank.domain.digest import (
    build_digest,
    find_touched_files,
    normalize_tool_name,
)

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


def items(*blocks: AnyBlock, begins: int = 1) -> list[WindowItem]:
    return [WindowItem(at, block, turn=1, tokens=1) for at, block in enumerate(blocks, begins)]


def test_a_call_reads_or_modifies_the_files_that_it_names() -> None:
    read: list[tuple[ToolCall, tuple[str, ...]]] = [
        (called("Read", file_path="a.py"), ("a.py",)),
        (called("read_file", absolute_path="/x/a.py"), ("/x/a.py",)),
        (called("view", path="a.py"), ("a.py",)),
        (called("cat", filename="a.py"), ("a.py",)),
        (called("NotebookRead", notebook_path="a.ipynb"), ("a.ipynb",)),
        (called("read_many_files", paths=["a.py", "b.py"]), ("a.py", "b.py")),
        (
            called("read_files", files=[{"path": "a.py", "limit": 3}, {"path": "b.py"}]),
            ("a.py", "b.py"),
        ),
        (called("mcp__files__read_text_file", path="a.py"), ("a.py",)),
        (called("str_replace_editor", command="view", path="a.py"), ("a.py",)),
    ]
    modified: list[tuple[ToolCall, tuple[str, ...]]] = [
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
        (called("exec", input=SCRIPT), PATCHED),
        (called("exec", input='exec_command({cmd:"cd x\\nsed -i s/a/b/ a.py"})'), ("a.py",)),
        (called("Bash", command="sed -i 's/a/b.c/' src/a.py src/b.py"), ("src/a.py", "src/b.py")),
        (called("Bash", command="cd x && sed -E -i.bak 's/x y/z/' a.py; cat b.py"), ("a.py",)),
        (called("Bash", command=["bash", "-lc", "perl -pi -e 's/a/b/' a.py"]), ("a.py",)),
        (called("Bash", command="cat > a.py <<'EOF'\nsed -i s/a/b/ b.py\nEOF"), ("a.py",)),
        (called("Bash", command="cat <<EOF >> a.py\nx\nEOF\ntee -a b.md"), ("a.py", "b.md")),
        (called("Bash", command="git apply <<'EOF'\n--- a/x.py\n+++ b/x.py\n@@\nEOF"), ("x.py",)),
    ]
    neither: list[ToolCall] = [
        called("Grep", pattern="x", path="src"),
        called("Bash", command="cat a.py > b.py"),
        called("bash", command="echo '*** Begin Patch' # not applied"),
        called("Bash", command="sed -n 1,30p a.py > b.py"),
        called("Bash", command="python - <<'EOF'\nopen('a.py').read()\nEOF"),
        called("Bash", command="make 2>&1 | tee /dev/null"),
        called("Bash", command="echo 'tee a.py; sed -i s/a/b/ b.py'"),
        called("exec", input='exec_command({cmd:"cat a.py"})'),
        called("Read", limit=3),
        called("Read", file_path=" "),
        called("Write", file_path={"deep": {"path": ["no"]}}),
        ToolCall(tool_call_id="c", name="Write", arguments="file_path: a.py"),
        ToolCall(tool_call_id="c", name="Write", arguments='["a.py"]'),
        ToolCall(tool_call_id="c", name="Read", arguments='{"file_path":' + "[" * 100_000),
    ]

    assert not [call for call, paths in read if find_touched_files(call) != (paths, False)]
    assert not [call for call, paths in modified if find_touched_files(call) != (paths, True)]
    assert not [call for call in neither if find_touched_files(call).paths != ()]


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


def test_what_is_only_said_is_no_inventory_and_what_a_later_version_wrote_is_kept() -> None:
    said = items(Block.assistant("I edited a.py"), Block.user("read b.py"))
    before = Digest.model_validate({"deployments": ["make"]})

    assert build_digest(said, Digest()) == Digest()
    assert build_digest((), before).model_extra == {"deployments": ["make"]}


@given(st.text(), st.text() | st.text("{}[]\"'*: \\nfile_path").map('{"path":'.__add__))
def test_any_call_can_be_read(name: str, arguments: str) -> None:
    find_touched_files(ToolCall(tool_call_id="c", name=name, arguments=arguments))


def made(path: str, begins: int) -> list[WindowItem]:
    told = json.dumps({"artifact_path": path, "sources_used": [1]})
    call = ToolCall(tool_call_id="c", name="draw")
    return items(call, ToolResult(tool_call_id="c", content=told), begins=begins)


def test_it_adds_to_what_was_counted_before() -> None:
    first = build_digest(made("a", 1), Digest(), [HiddenBlock(position=9)])
    second = build_digest(made("b", 3), first, [HiddenBlock(position=5, replacement="[five]")])

    assert [(one.path, one.position, one.tool) for one in second.artifacts] == [
        ("a", 2, "draw"),
        ("b", 4, "draw"),
    ]
    assert [(one.position, one.replacement) for one in second.hidden] == [(5, "[five]"), (9, None)]
    # Of a path that was made again the newest result counts.
    again = build_digest(made("a", 5), first)
    assert [(one.path, one.position) for one in again.artifacts] == [("a", 6)]


def test_an_artifact_is_listed_once_and_without_its_call_by_no_tool() -> None:
    told = json.dumps({"physical_path": "out/a.pdf", "visibility": "external"})
    answers = items(
        ToolResult(tool_call_id="gone", content=told),
        ToolCall(tool_call_id="c", name="infra.write"),
        ToolResult(tool_call_id="c", content=told),
        ToolResult(tool_call_id="d", content='{"artifact_path": '),
        ToolResult(tool_call_id="e", content='["artifact_path"]'),
    )

    (artifact,) = build_digest(answers, Digest()).artifacts

    assert (artifact.path, artifact.tool, artifact.visibility) == ("out/a.pdf", None, "external")


def test_commands_are_named_by_their_calls() -> None:
    calls = items(
        ToolCall(tool_call_id="1", name="Bash", arguments={"command": "ls"}),
        ToolCall(tool_call_id="2", name="read", arguments={"path": "a"}),
        ToolCall(tool_call_id="3", name="mcp__local__run_command"),
    )

    first = build_digest(calls, Digest())
    second = build_digest(items(ToolCall(tool_call_id="4", name="bash"), begins=4), first)

    assert (first.commands, second.commands) == (Ranges.of([1, 3]), Ranges.of([4]))


def test_a_memory_that_was_not_answered_or_found_nothing_is_told_as_such() -> None:
    calls = items(
        ToolCall(tool_call_id="1", name="memory_read", arguments={"query": "never answered"}),
        ToolCall(tool_call_id="2", name="search_memory", arguments={"query": "nothing"}),
        ToolResult(tool_call_id="2", content="no hits"),
    )

    (read,) = build_digest(calls, Digest()).memory_reads
    assert (read.position, read.query, read.hits, read.paths) == (2, "nothing", 0, ())
