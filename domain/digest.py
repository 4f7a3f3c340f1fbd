"""Lists what removed calls did: the files they touched, artifacts, commands and memory reads."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import JsonValue

from .blocks import ToolCall, ToolResult
from .compaction_events import Artifact, Digest, HiddenBlock, MemoryRead
from .item import WindowItem
from .ranges import Ranges
from .shell_edits import find_written_files, read_patch, read_shell_command


class TouchedPaths(NamedTuple):
    """The files that one call names, and whether the call changes them."""

    paths: tuple[str, ...] = ()
    modifies: bool = False


def parse_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names are compared without case, separators, a server's prefix, and a final `tool` or `action`.
READ_TOOLS = parse_names(
    "cat fileread getfilecontents notebookread open openfile read readfile readfiles "
    "readmanyfiles readmediafile readmultiplefiles readtextfile view viewfile viewimage"
)
_PATCH_TOOLS = parse_names("applydiff applypatch editpatch patch patchfile")
_MOVE_TOOLS = parse_names("move movefile rename renamefile")
WRITE_TOOLS = (
    parse_names(
        "append appendfile appendtofile create createfile createorupdatefile delete deletefile "
        "edit editblock editfile editnotebook fileedit filewrite insert inserteditintofile "
        "multiedit newfile notebookedit overwrite removefile replace replaceinfile "
        "replacestringinfile savefile searchreplace strreplace updatefile write writefile "
        "writetextfile writetofile"
    )
    | _PATCH_TOOLS
    | _MOVE_TOOLS
)
# One tool that reads and writes; its argument `command` says which.
_EDITOR_TOOLS = parse_names("editor fileeditor strreplacebasededit strreplaceeditor texteditor")
SHELL_TOOLS = parse_names(
    "bash cmd exec execcommand executebash executecommand localshell powershell run runcommand "
    "runinterminal runshellcommand runterminalcmd runterminalcommand shell terminal"
)
_PATH_ARGUMENTS = parse_names(
    "absolutepath file filename filepath filepaths files notebookpath path paths relativepath "
    "relativeworkspacepath targetfile"
)
_MOVE_ARGUMENTS = _PATH_ARGUMENTS | parse_names("destination from newpath oldpath source target to")

_PREFIX = re.compile(r"^.*(?:__|[./:])(?=.)", re.DOTALL)
_NAME_SUFFIX = re.compile(r"(?<=.)(?:tool|action)$")
_SEPARATORS = str.maketrans("", "", "_- ")
_PATCH_HEADER = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_DIFF_HEADER = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?([^\t\r\n]+)", re.MULTILINE)
_RUN_AS_COMMAND = re.compile(r"\bapply_patch\b[^\n]*\n\*\*\* Begin Patch")
_MAY_WRITE = re.compile(r"\*\*\* Begin Patch|<<|\btee\b|git apply|\bpatch -p|sed |perl ")
"""What each shell command contains that changes files in a way that is read here."""
_MAX_DEPTH = 4


def build_digest(
    items: Iterable[WindowItem],
    previous: Digest,
    hidden: Iterable[HiddenBlock] = (),
    *,
    touches: Callable[[ToolCall], TouchedPaths] | None = None,
    tracked: Iterable[str] = (),
) -> Digest:
    """Return the inventory of `items` and `hidden`, added to the previous one.

    A modified file is not listed as read. A call whose result is an error did neither. `touches`
    replaces `find_touched_files`; `tracked` are files that the agent's program knows to have been
    read.
    """
    items = tuple(items)
    touches = touches or find_touched_files
    answers = map_results_by_call(items)
    read, modified = {*previous.read_files, *tracked}, set(previous.modified_files)
    for item in items:
        if isinstance(item.block, ToolCall) and not _is_error(answers.get(item.position)):
            touch = touches(item.block)
            (modified if touch.modifies else read).update(touch.paths)
    paths = {one.path: one for one in (*previous.artifacts, *_iter_artifacts(items, answers))}
    unseen = {one.position: one for one in (*previous.hidden, *hidden)}
    return previous.model_copy(
        update={
            "read_files": tuple(sorted(read - modified)),
            "modified_files": tuple(sorted(modified)),
            "artifacts": tuple(paths.values()),
            # Earlier commands are left out: in a long session they would fill most of each
            # summary's row.
            "commands": Ranges.of(_iter_commands(items)),
            "memory_reads": (*previous.memory_reads, *_iter_memory_reads(items, answers)),
            "hidden": tuple(one for _, one in sorted(unseen.items())),
        }
    )


def map_results_by_call(items: Iterable[WindowItem]) -> dict[int, WindowItem]:
    """Return the results among `items` by the positions of their calls."""
    asked: dict[str, int] = {}
    answers: dict[int, WindowItem] = {}
    for item in items:
        if isinstance(item.block, ToolCall):
            asked[item.block.tool_call_id] = item.position
        elif isinstance(item.block, ToolResult):
            call = item.call if item.call is not None else asked.get(item.block.tool_call_id)
            if call is not None:
                answers[call] = item
    return answers


def find_touched_files(call: ToolCall) -> TouchedPaths:
    """Return the files that a call reads or modifies, by its tool's name; none for other tools."""
    name = normalize_tool_name(call.name)
    if name in READ_TOOLS:
        return TouchedPaths(_find_argument_paths(read_arguments(call), _PATH_ARGUMENTS))
    if name in _EDITOR_TOOLS:
        arguments = read_arguments(call)
        paths = _find_argument_paths(arguments, _PATH_ARGUMENTS)
        return TouchedPaths(paths, modifies=arguments.get("command", "view") != "view")
    if name in WRITE_TOOLS:
        arguments = read_arguments(call)
        paths = _find_argument_paths(
            arguments, _MOVE_ARGUMENTS if name in _MOVE_TOOLS else _PATH_ARGUMENTS
        )
        if not paths and name in _PATCH_TOOLS:
            paths = _find_patched_paths("\n".join(iter_strings(arguments)))
        return TouchedPaths(paths, modifies=True)
    if name in SHELL_TOOLS and _MAY_WRITE.search(call.arguments):
        arguments = read_arguments(call)
        if patch := read_patch(arguments):
            return TouchedPaths(_find_patched_paths(patch), modifies=True)
        text = "\n".join(iter_strings(arguments))
        if _RUN_AS_COMMAND.search(text):
            return TouchedPaths(_find_patched_paths(text), modifies=True)
        if written := find_written_files(read_shell_command(arguments)):
            return TouchedPaths(written, modifies=True)
    return TouchedPaths()


@lru_cache(maxsize=256)
def normalize_tool_name(tool: str) -> str:
    """Return a tool's name as the tables above write it: `mcp__files__Read_File` is `readfile`."""
    name = _PREFIX.sub("", tool).translate(_SEPARATORS).casefold()
    return _NAME_SUFFIX.sub("", name)


def read_arguments(call: ToolCall) -> dict[str, JsonValue]:
    """Return a call's arguments; text that is not a JSON object is under `_raw`, as a patch is."""
    try:
        return call.parse_arguments()
    except RecursionError:  # nested too deeply for the parser, so no tool would accept it
        return {}


def iter_strings(value: JsonValue, depth: int = 0) -> Iterator[str]:
    """Yield the strings among values, in order, a few levels deep."""
    if isinstance(value, str):
        yield value
    elif depth < _MAX_DEPTH and isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from iter_strings(inner, depth + 1)


def _is_error(answer: WindowItem | None) -> bool:
    return answer is not None and isinstance(answer.block, ToolResult) and answer.block.is_error


def _find_argument_paths(arguments: dict[str, JsonValue], keys: frozenset[str]) -> tuple[str, ...]:
    return tuple(
        path
        for key, value in arguments.items()
        if key.translate(_SEPARATORS).casefold() in keys
        for path in _iter_paths(value, keys)
        if path.strip()
    )


def _iter_paths(value: JsonValue, keys: frozenset[str]) -> Iterator[str]:
    """Yield the paths of a path, a list of paths, or a list of objects that hold one each."""
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict):
            named = (v for k, v in entry.items() if k.translate(_SEPARATORS).casefold() in keys)
            yield from (path for path in named if isinstance(path, str))


def _find_patched_paths(text: str) -> tuple[str, ...]:
    paths = _PATCH_HEADER.findall(text) or _DIFF_HEADER.findall(text)
    return tuple(
        dict.fromkeys(path.strip() for path in paths if path.strip() not in {"", "/dev/null"})
    )


_MEMORY_TOOLS = parse_names(
    "memoryread memorysearch readmemory recallmemory searchmemories searchmemory searchnodes"
)
"""Tools that read a memory, normalized as in the digest's tables."""
_MAX_MEMORY_HITS = 20
"""The largest number of turns and of paths listed for one memory read."""


def _iter_artifacts(
    items: Sequence[WindowItem], answers: Mapping[int, WindowItem]
) -> Iterator[Artifact]:
    """Yield the artifacts that results name, each path once."""
    calls = {item.position: item for item in items}
    call_of = {answer.position: calls.get(at) for at, answer in answers.items()}
    seen = set[str]()
    for item in items:
        text = item.block.text if isinstance(item.block, ToolResult) else ""
        # Few results are artifacts; skip parsing the rest.
        is_one = "artifact_path" in text or "physical_path" in text
        fields = _parse_object(text) if is_one else {}
        path = _as_text(fields.get("artifact_path")) or _as_text(fields.get("physical_path"))
        if not path or path in seen:
            continue
        seen.add(path)
        call = call_of.get(item.position)
        yield Artifact(
            position=item.position,
            path=path,
            mime=_as_text(fields.get("mime")),
            kind=_as_text(fields.get("kind")),
            visibility=_as_text(fields.get("visibility")),
            tool=call.block.name or None if call and isinstance(call.block, ToolCall) else None,
            sources=tuple(map(str, _as_list(fields.get("sources_used")))),
        )


def _iter_memory_reads(
    items: Sequence[WindowItem], answers: Mapping[int, WindowItem]
) -> Iterator[MemoryRead]:
    for item in items:
        call, answer = item.block, answers.get(item.position)
        if (
            answer is None
            or not isinstance(call, ToolCall)
            or normalize_tool_name(call.name) not in _MEMORY_TOOLS
        ):
            continue
        hits = _list_objects(_parse_object(answer.block.text).get("hits"))
        snippets = (one for hit in hits for one in _list_objects(hit.get("snippets")))
        yield MemoryRead(
            position=item.position,
            query=_as_text(read_arguments(call).get("query")) or "",
            hits=len(hits),
            turns=_list_first(str(hit.get("turn_id") or "") for hit in hits),
            paths=_list_first(str(snippet.get("path") or "") for snippet in snippets),
        )


def _iter_commands(items: Iterable[WindowItem]) -> Iterator[int]:
    """Yield the positions of the calls that ran a command."""
    for item in items:
        if isinstance(item.block, ToolCall) and normalize_tool_name(item.block.name) in SHELL_TOOLS:
            yield item.position


def _parse_object(text: str) -> dict[str, Any]:
    if not text.lstrip().startswith("{"):
        return {}
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _list_objects(value: object) -> list[dict[str, Any]]:
    return [entry for entry in _as_list(value) if isinstance(entry, dict)]


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _as_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _list_first(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, texts)))[:_MAX_MEMORY_HITS]
