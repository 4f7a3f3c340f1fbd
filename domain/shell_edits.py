"""Reads what a shell tool was asked to run, and which files the commands write."""

import json
import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

_SCRIPT_CALL = re.compile(r"\b(?:exec_command|shell|exec)\(\s*\{")
"""What a script says that runs commands through its own tools, as Codex's `exec` does."""
_SCRIPT_COMMAND = re.compile(r"\b(?:cmd|command)[\"']?\s*:\s*(\"(?:[^\"\\\n]|\\.)*\")")
_SCRIPT_PATCH = re.compile(r"\"(?:[^\"\\\n]|\\.)*?\*\*\* Begin Patch(?:[^\"\\\n]|\\.)*\"")
_TOOL_SCRIPT = re.compile(r"\bawait tools\.\w+\(")
_LITERAL = re.compile(r"(\"(?:[^\"\\\n]|\\.)*\")")
_COMMAND_KEYS = ("command", "cmd", "script", "commands", "input", "_raw")

_SEGMENT = re.compile(r"&&|\|\||[;|\n]")
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_HEREDOC = re.compile(r"<<-?\s*\\?(['\"]?)(\w+)\1")
_TARGET = re.compile(r">>?\s*([^\s<>&|;()]+)")
_TEE = re.compile(r"\btee\s+(?:-a\s+|--append\s+)?([^\s<>&|;()-][^\s<>&|;()]*)")
_IN_PLACE = re.compile(r"(?:^|\s)(?:sed|perl)\s+(?:\S+\s+)*?(?:-\w*i\S*|--in-place\S*)\s")
_APPLY = re.compile(r"\bgit\s+apply\b|\bpatch\s+-p\d")
_DIFF_TARGET = re.compile(r"^\+\+\+ (?:b/)?([^\t\r\n]+)", re.MULTILINE)
_FILE_NAME = re.compile(
    r"[\w@~+.-]*[/\w@~+.-]*\.[A-Za-z]\w{0,9}|(?:[\w@~+.-]+/)*(?:Make|Docker)file"
)


def read_shell_command(arguments: Mapping[str, JsonValue]) -> str:
    """Return the commands that a shell tool was asked to run; empty if there are none.

    Of a list of words, the one after an option such as `-lc`; of a script that calls tools, the
    commands that it runs, one a line.
    """
    for key in _COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, list):
            words = [word for word in value if isinstance(word, str)]
            is_wrapped = len(words) > 1 and words[-2].startswith("-")
            return words[-1] if is_wrapped else " ".join(words)
        if isinstance(value, str):
            if not is_script(value):
                return value
            return "\n".join(_iter_literals(_SCRIPT_COMMAND, value))
    return ""


def read_patch(arguments: Mapping[str, JsonValue]) -> str:
    """Return the patch that a script holds as a string literal; empty without one."""
    value = next((v for key in _COMMAND_KEYS if isinstance(v := arguments.get(key), str)), "")
    is_script = "apply_patch(" in value and "*** Begin Patch" in value
    return "\n".join(_iter_literals(_SCRIPT_PATCH, value)) if is_script else ""


def find_written_files(command: str) -> tuple[str, ...]:
    """Return the files that `sed -i`, here-documents, `tee` and `git apply` change, in order."""
    found: list[str] = []
    if _APPLY.search(command):
        found += _DIFF_TARGET.findall(command)
    for line in _iter_lines_outside(command):
        is_document = _HEREDOC.search(line) is not None
        plain = _QUOTED.sub(lambda quoted: re.sub(r"[\s<>&|;]", "_", quoted[0]), line)
        for part in _SEGMENT.split(plain):
            if is_document:
                found += _TARGET.findall(part)
            found += _TEE.findall(part)
            if _IN_PLACE.search(part):
                # The last words are files; what comes before them says how to change them.
                found += _iter_last_files(part)
    named = (path.strip("'\"") for path in found)
    return tuple(dict.fromkeys(path for path in named if path and not path.startswith("/dev/")))


def read_script_texts(text: str) -> str:
    """Return the string literals of a script that calls tools, one a line; of others, the text."""
    return "\n".join(_iter_literals(_LITERAL, text)) if _TOOL_SCRIPT.search(text) else text


def is_script(text: str) -> bool:
    """Check whether a text is a script that runs commands by calling tools."""
    return _SCRIPT_CALL.search(text) is not None


def _iter_literals(pattern: re.Pattern[str], script: str) -> Iterator[str]:
    for found in pattern.finditer(script):
        literal = found[found.lastindex or 0]
        try:
            yield str(json.loads(literal))
        except ValueError:  # JavaScript has escapes that JSON does not have
            yield literal[1:-1]


def _iter_lines_outside(command: str) -> Iterator[str]:
    """Yield the lines of a command without the contents of its here-documents."""
    ending = None
    for line in command.split("\n"):
        if ending is not None:
            ending = None if line.strip() == ending else ending
            continue
        opened = _HEREDOC.search(line)
        ending = opened[2] if opened else None
        yield line


def _iter_last_files(part: str) -> Iterator[str]:
    files: list[str] = []
    for word in reversed(part.split()):
        if not _FILE_NAME.fullmatch(word.strip("'\"")) or word.startswith(("'s/", "s/", "-")):
            break
        files.append(word)
    yield from reversed(files)
