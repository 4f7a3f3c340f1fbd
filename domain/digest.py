"""Takes the exact inventory of what a boundary hides: the files that calls read and modified."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from pydantic import JsonValue

from .blocks import ToolCall, ToolResult
from .compaction_events import Digest
from .item import Item


class Touch(NamedTuple):
    """The files that one call names, and whether it is there to change them."""

    paths: tuple[str, ...] = ()
    modifies: bool = False


def names(text: str) -> frozenset[str]:
    """A table of names, written as words."""
    return frozenset(text.split())


# Names are compared without case, separators, a server's prefix, and a last `tool` or `action`.
READS = names(
    "cat fileread getfilecontents notebookread open openfile read readfile readfiles "
    "readmanyfiles readmediafile readmultiplefiles readtextfile view viewfile viewimage"
)
PATCHES = names("applydiff applypatch editpatch patch patchfile")
MOVES = names("move movefile rename renamefile")
WRITES = (
    names(
        "append appendfile appendtofile create createfile createorupdatefile delete deletefile "
        "edit editblock editfile editnotebook fileedit filewrite insert inserteditintofile "
        "multiedit newfile notebookedit overwrite removefile replace replaceinfile "
        "replacestringinfile savefile searchreplace strreplace updatefile write writefile "
        "writetextfile writetofile"
    )
    | PATCHES
    | MOVES
)
# One tool that does both; its argument `command` says which.
EDITORS = names("editor fileeditor strreplacebasededit strreplaceeditor texteditor")
SHELLS = names(
    "bash cmd exec execcommand executebash executecommand localshell powershell run runcommand "
    "runinterminal runshellcommand runterminalcmd runterminalcommand shell terminal"
)
PATH_ARGUMENTS = names(
    "absolutepath file filename filepath filepaths files notebookpath path paths relativepath "
    "relativeworkspacepath targetfile"
)
MOVE_ARGUMENTS = PATH_ARGUMENTS | names("destination from newpath oldpath source target to")

_PREFIX = re.compile(r"^.*(?:__|[./:])(?=.)", re.DOTALL)
_ENDING = re.compile(r"(?<=.)(?:tool|action)$")
_SEPARATORS = str.maketrans("", "", "_- ")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_DIFFED = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?([^\t\r\n]+)", re.MULTILINE)
_RUN_AS_COMMAND = re.compile(r"\bapply_patch\b[^\n]*\n\*\*\* Begin Patch")
_RUN_IN_SCRIPT = re.compile(r"\bapply_patch\(")
_DEEPEST = 4


def digest_of(
    items: Iterable[Item],
    previous: Digest,
    *,
    touches: Callable[[ToolCall], Touch] | None = None,
    tracked: Iterable[str] = (),
) -> Digest:
    """What `items` read and modified, on top of what was counted before.

    A modified file is not listed as read. A call whose result is an error did neither. `touches`
    says what a call does to files, where another rule than `touched` is wanted; `tracked` are files
    that the agent's program knows to have been read.
    """
    items = tuple(items)
    touches = touches or touched
    answers = answers_to(items)
    read, modified = {*previous.read_files, *tracked}, set(previous.modified_files)
    for item in items:
        if isinstance(item.block, ToolCall) and not _is_error(answers.get(item.position)):
            touch = touches(item.block)
            (modified if touch.modifies else read).update(touch.paths)
    return previous.model_copy(
        update={
            "read_files": tuple(sorted(read - modified)),
            "modified_files": tuple(sorted(modified)),
        }
    )


def answers_to(items: Iterable[Item]) -> dict[int, Item]:
    """The results among `items` by the positions of their calls."""
    asked: dict[str, int] = {}
    answers: dict[int, Item] = {}
    for item in items:
        if isinstance(item.block, ToolCall):
            asked[item.block.tool_call_id] = item.position
        elif isinstance(item.block, ToolResult):
            call = item.call if item.call is not None else asked.get(item.block.tool_call_id)
            if call is not None:
                answers[call] = item
    return answers


def touched(call: ToolCall) -> Touch:
    """The files that a call reads or modifies by its tool's name; none for other tools."""
    name = bare_name(call.name)
    if name in READS:
        return Touch(_named(arguments_of(call), PATH_ARGUMENTS))
    if name in EDITORS:
        arguments = arguments_of(call)
        paths = _named(arguments, PATH_ARGUMENTS)
        return Touch(paths, modifies=arguments.get("command", "view") != "view")
    if name in WRITES:
        arguments = arguments_of(call)
        paths = _named(arguments, MOVE_ARGUMENTS if name in MOVES else PATH_ARGUMENTS)
        if not paths and name in PATCHES:
            paths = _patched("\n".join(strings_in(arguments)))
        return Touch(paths, modifies=True)
    if name in SHELLS and "*** Begin Patch" in call.arguments:
        arguments = arguments_of(call)
        text = "\n".join(strings_in(arguments))
        if "_raw" in arguments and _RUN_IN_SCRIPT.search(text):
            # A script that holds the patch as a string literal.
            return Touch(_patched(text.replace("\\n", "\n")), modifies=True)
        if _RUN_AS_COMMAND.search(text):
            return Touch(_patched(text), modifies=True)
    return Touch()


@lru_cache(maxsize=256)
def bare_name(tool: str) -> str:
    """A tool's name as the tables above write it: `mcp__files__Read_File` is `readfile`."""
    name = _PREFIX.sub("", tool).translate(_SEPARATORS).casefold()
    return _ENDING.sub("", name)


def arguments_of(call: ToolCall) -> dict[str, JsonValue]:
    """A call's arguments; text that is no JSON object comes under `_raw`, as a patch does."""
    try:
        return call.parsed()
    except RecursionError:  # nested deeper than the parser goes: nothing that a tool would take
        return {}


def strings_in(value: JsonValue, depth: int = 0) -> Iterator[str]:
    """The strings among values, in order, a few levels deep."""
    if isinstance(value, str):
        yield value
    elif depth < _DEEPEST and isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings_in(inner, depth + 1)


def _is_error(answer: Item | None) -> bool:
    return answer is not None and isinstance(answer.block, ToolResult) and answer.block.is_error


def _named(arguments: dict[str, JsonValue], keys: frozenset[str]) -> tuple[str, ...]:
    return tuple(
        path
        for key, value in arguments.items()
        if key.translate(_SEPARATORS).casefold() in keys
        for path in _paths(value, keys)
        if path.strip()
    )


def _paths(value: JsonValue, keys: frozenset[str]) -> Iterator[str]:
    """A path, a list of them, or a list of objects that hold one each."""
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict):
            named = (v for k, v in entry.items() if k.translate(_SEPARATORS).casefold() in keys)
            yield from (path for path in named if isinstance(path, str))


def _patched(text: str) -> tuple[str, ...]:
    paths = _PATCHED.findall(text) or _DIFFED.findall(text)
    return tuple(
        dict.fromkeys(path.strip() for path in paths if path.strip() not in {"", "/dev/null"})
    )
