"""Reads tool calls and their results as what was done: edits, commands, failures, to-do lists."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from ..blocks import ToolCall, ToolResult
from ..digest import READS, SHELLS, arguments_of, bare_name, touched
from ..ranges import Ranges
from ..window import Item
from .wording import code, shortened, shortened_inside, tidied


class Deed(StrEnum):
    """What kind of thing a call did."""

    EDIT = "edit"
    RUN = "run"
    LOOK = "look"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Action:
    """One tool call together with what came of it."""

    deed: Deed
    label: str
    """What was done, if it was done: `edited x`, `ran y`."""
    noun: str
    """What was tried: `edit of x`, `y`."""
    targets: tuple[str, ...]
    """What it was tried on, the last of which counts: success later on makes up for a failure."""
    handles: Ranges
    outcome: str = ""
    """What the result says, in a few words."""
    is_failure: bool = False

    @property
    def newest(self) -> int:
        return self.handles.runs[-1][1]


@dataclass(frozen=True, slots=True)
class Task:
    """One entry of a to-do list that the agent keeps with a tool."""

    text: str
    status: str
    position: int

    @property
    def is_done(self) -> bool:
        return _DONE.search(self.status) is not None

    @property
    def is_begun(self) -> bool:
        return _BEGUN.search(self.status) is not None


_DONE = re.compile(r"done|complete|finish|cancel|delete", re.IGNORECASE)
_BEGUN = re.compile(r"progress|doing|active|started", re.IGNORECASE)
_PLANNING = re.compile(r"todo|plan$|^plan|^task(?:create|update|track|list|get|manager)")
_LOOKING = re.compile(
    r"get|list|search|find|read|view|fetch|grep|glob|ls$|query|lookup|show|describe|check|think|"
    r"calculat|wait|report|recall|poll|writestdin|bashoutput|taskoutput|codebase|websearch|webfetch|"
    r"exitplan|enterplan|toolsearch|skill|ask"
)
_LOOKS = frozenset(
    (
        "awk cat cd column cut date df diff dirname du echo env exit export fd file find grep head "
        "jq kill less ls man more nl od printenv printf ps pwd read realpath rg set sleep sort "
        "source stat strings tail tee test time top tr tree true type uniq wait wc which whoami xxd ["
    ).split(" ")
)
_GIT_LOOKS = frozenset(
    "blame branch config describe diff fetch grep log ls-files ls-tree reflog remote rev-list "
    "rev-parse shortlog show show-ref status".split(" ")
)
_INTERPRETERS = re.compile(r"(?:python|node|bash|sh|ruby|deno|bun|perl|php)[\d.]*")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
# How much of the output the agent wanted to see says nothing of what it ran.
_VIEWING = re.compile(r"(?:\s*(?:2>&1|2>/dev/null|\|\s*(?:head|tail|cat|less)(?:\s+-?\w+)*))+\s*$")
_SEGMENT = re.compile(r"&&|\|\||[;|\n&()]")
_LEADING = re.compile(
    r"\A(?:cd\s+(?:\"[^\"]*\"|'[^']*'|\S+)\s*(?:&&|;|\n)\s*|set -\w+\s*(?:;|&&|\n)\s*|[A-Z_]+=\S*\s+)+"
)
_IN_SCRIPT = re.compile(r"\b(?:cmd|command)[\"']?\s*:\s*\"((?:[^\"\\\n]|\\.)*)\"")
_EXIT_CODE = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?:?|<returncode>|exit_code=) ?(-?\d{1,3})\b",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    r"\b\d+ (?:passed|failed|passing|failing|failures?|skipped|errors?|tests? (?:passed|failed|run))\b"
    r"|\btest result:|^(?:ok|FAIL|PASS|FAILED|OK|SUCCESS)\b|^Tests?:|BUILD (?:SUCC|FAIL)"
    r"|^\[[\w/. ()-]{1,80} [0-9a-f]{7,40}\]",
    re.MULTILINE,
)
_BAD = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?|tests? failed)\b|\bFAIL|BUILD FAIL"
)
_CULPRIT = re.compile(
    r"--- FAIL: |^FAILED \S|^\s*(?:✗|✕|✘|×|not ok) ?\d*|panicked at ", re.MULTILINE
)
_TROUBLE = re.compile(
    r"\b(?:error|exception|fail(?:ed|ure)?|fatal|panic|cannot|can't|could not|unable|not found|no such"
    r"|denied|refused|undefined|unexpected|invalid|unknown|missing|does not|doesn't|timed? ?out"
    r"|conflict|rejected|abort(?:ed)?|not allowed|mismatch|assert\w*)\b",
    re.IGNORECASE,
)
_RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Warning)\b", re.MULTILINE)
_BORING = re.compile(
    r"(?:process )?exit(?:ed)?(?: with)? code:? \d+|<[^>]*>|error:?", re.IGNORECASE
)
# Some shells put a few lines about the process before what it wrote.
_HEADER = re.compile(r"\A(?:[A-Z][\w ]+:? .*\n){1,6}Output:\n")
_TAGS = re.compile(r"\A<[\w-]+>|</[\w-]+>\Z")
_ENDS = 3_000
_VERDICT_WITHIN = 2_000
_LABEL = 90
_MESSAGE = 200


def actions_of(items: Iterable[Item]) -> Iterator[Action]:
    """What each answered call did, in order of the calls."""
    items = tuple(items)
    answers = _answers(items)
    for item in items:
        if isinstance(item.block, ToolCall) and (answer := answers.get(item.position)):
            yield from _actions(item.block, item.position, answer)


def _answers(items: Iterable[Item]) -> dict[int, Item]:
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


def _actions(call: ToolCall, position: int, answer: Item) -> Iterator[Action]:
    block = answer.block
    assert isinstance(block, ToolResult)
    name = bare_name(call.name)
    if _PLANNING.search(name):
        return
    touch = touched(call)
    if touch.modifies and touch.paths:
        verb = "wrote" if name.startswith(("write", "create", "new", "save")) else "edited"
        for path in touch.paths:
            at = Ranges.of([position])
            shown = code(tail_of(path))
            outcome = trouble_in(block.text) if block.is_error else ""
            yield Action(
                Deed.EDIT,
                f"{verb} {shown}",
                f"edit of {shown}",
                (path,),
                at,
                outcome,
                block.is_error,
            )
        return
    if name in SHELLS:
        yield _run(call, answer.position, block)
        return
    look = touch.paths or name in READS or _LOOKING.match(name) is not None
    yield _call(call, answer.position, block, Deed.LOOK if look else Deed.CALL)


def _run(call: ToolCall, position: int, result: ToolResult) -> Action:
    command = command_of(arguments_of(call))
    acting = _acting(command)
    deed = Deed.RUN if acting else Deed.LOOK
    bare = _VIEWING.sub("", _LEADING.sub("", command.strip(), count=1).partition("<<")[0])
    shown = code(shortened(tidied(bare), _LABEL))
    targets = targets_of(command)
    output, header = _output(result.text)
    ends = _ends(output)
    # Whoever looks at a log of tests has not run them.
    verdict = tidied(_line(_VERDICT, ends[-_VERDICT_WITHIN:], last=True)) if acting else ""
    is_bad = _BAD.search(verdict) is not None
    if result.is_error or is_bad or _exit_code(header or ends):
        culprit = tidied(_line(_CULPRIT, ends))
        told = culprit or (verdict if is_bad and " " in verdict else trouble_in(ends))
        why = shortened(told, _MESSAGE)
        return Action(deed, f"ran {shown}", shown, targets, Ranges.of([position]), why, True)
    outcome = shortened(verdict, _LABEL) or brief(output)
    return Action(deed, f"ran {shown}", shown, targets, Ranges.of([position]), outcome)


def _call(call: ToolCall, position: int, result: ToolResult, deed: Deed) -> Action:
    said = shortened(", ".join(_spoken(arguments_of(call))), _LABEL)
    shown = code(f"{call.name} {said}".strip())
    at = Ranges.of([position])
    outcome = trouble_in(result.text) if result.is_error else brief(result.text)
    return Action(deed, f"called {shown}", shown, (shown,), at, outcome, result.is_error)


def command_of(arguments: dict[str, JsonValue]) -> str:
    """The command that a shell call runs."""
    for key in ("command", "cmd", "script", "commands", "input", "_raw"):
        value = arguments.get(key)
        if isinstance(value, list):
            words = [word for word in value if isinstance(word, str)]
            # ["bash", "-lc", "the command"]
            return words[-1] if len(words) > 1 and words[-2].startswith("-") else " ".join(words)
        if isinstance(value, str):
            script = _IN_SCRIPT.search(value) if key == "_raw" else None
            return script[1].replace('\\"', '"').replace("\\n", "\n") if script else value
    return ""


def targets_of(command: str) -> tuple[str, ...]:
    """Programs and subcommands that a command runs; all of it where it only looks."""
    return tuple(map(_target, _acting(command))) or (command,)


def _acting(command: str) -> list[list[str]]:
    """The words of those parts of a command that do more than look."""
    plain = _QUOTED.sub('""', command.partition("<<")[0])
    segments = (_program(part) for part in _SEGMENT.split(plain))
    return [words for words in segments if words and not _is_look(words)]


def tail_of(path: str) -> str:
    """Enough of a path to know it by; the digest has all of it."""
    path = tidied(path)
    if len(path) <= 48:
        return path
    return "/".join(path.replace("\\", "/").split("/")[-2:])[-80:]


def brief(text: str) -> str:
    """A result that is short enough to be its own summary."""
    if len(text) > 400:
        return ""
    line = tidied(text)
    return line if 0 < len(line) <= _LABEL and line[0] not in "{[<(" else ""


def trouble_in(text: str) -> str:
    """The line of a failed call's output that says most about the failure."""
    ends = _ends(text)
    raised = _line(_RAISED, ends, last=True) if "Traceback" in ends else ""
    telling = raised or _line(_TROUBLE, ends)
    if not telling:
        lines = (line.strip() for line in ends.split("\n"))
        telling = next(
            (line for line in lines if line and not _BORING.fullmatch(line)), "no output"
        )
    if telling.endswith(":"):
        # What it announces is what matters.
        telling = f"{telling} {ends.partition(telling)[2].strip().partition(chr(10))[0]}"
    return shortened_inside(tidied(_TAGS.sub("", telling)), _MESSAGE)


def tasks_of(items: Iterable[Item]) -> list[Task]:
    """The agent's own to-do list as it last stood; kept whole by one call or entry by entry."""
    tasks: dict[str, Task] = {}
    answers = _answers(items := tuple(items))
    for item in items:
        if not isinstance(item.block, ToolCall) or not _PLANNING.search(bare_name(item.block.name)):
            continue
        arguments = arguments_of(item.block)
        entries = next((v for v in arguments.values() if _is_plan(v)), None)
        if isinstance(entries, list):
            whole = (_task(entry, item.position) for entry in entries if isinstance(entry, dict))
            tasks = {task.text: task for task in whole if task.text}
            continue
        task = _task(arguments, item.position)
        answer = answers.get(item.position)
        name = str(arguments.get("taskId") or arguments.get("id") or "") or _number_in(answer)
        if name in tasks:
            older = tasks[name]
            tasks[name] = Task(task.text or older.text, task.status or older.status, item.position)
        elif task.text and name:
            tasks[name] = task
    return list(tasks.values())


def _is_plan(value: JsonValue) -> bool:
    return isinstance(value, list) and any(isinstance(v, dict) and "status" in v for v in value)


def _task(entry: dict[str, JsonValue], position: int) -> Task:
    keys = ("content", "step", "title", "subject", "text", "description", "task")
    text = next((value for key in keys if isinstance(value := entry.get(key), str)), "")
    status = entry.get("status")
    return Task(tidied(text), status if isinstance(status, str) else "", position)


def _number_in(answer: Item | None) -> str:
    found = re.search(r"\d+", answer.block.text[:200]) if answer else None
    return found[0] if found else ""


def _spoken(arguments: dict[str, JsonValue]) -> Iterator[str]:
    """Arguments in words, the short ones."""
    for key, value in arguments.items():
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            yield f"{key}={shortened(tidied(str(value)), 40)}"


def _program(part: str) -> list[str]:
    words = part.split()
    while words and (
        words[0] in {"sudo", "time", "nohup", "command", "env", "!", "do", "then", "if"}
        or "=" in words[0]
    ):
        words = words[1:]
    if words[:1] == ["timeout"]:
        words = words[2:]
    return words


def _is_look(words: list[str]) -> bool:
    program = words[0].rpartition("/")[2]
    if program == "git":
        verbs = [word for word in words[1:] if not word.startswith("-") and "/" not in word]
        return not verbs or verbs[0] in _GIT_LOOKS
    if program == "sed":
        return not any(word.startswith("-i") for word in words)
    if program == "gh":
        return bool({"view", "list", "status", "diff", "checks"} & set(words)) or "api" in words
    return program in _LOOKS


def _target(words: list[str]) -> str:
    """Program and subcommand, or the script that an interpreter runs."""
    program = words[0].rpartition("/")[2]
    rest = [word for word in words[1:] if not word.startswith("-")]
    if _INTERPRETERS.fullmatch(program):
        return " ".join([program, *rest[:1]])
    verbs = []
    for word in rest[:2]:
        if not re.fullmatch(r"[a-zA-Z][\w:-]*", word):
            break
        verbs.append(word)
        if word not in {"run", "exec", "compose", "tool"}:
            break
    return " ".join([program, *verbs])


def _exit_code(ends: str) -> bool:
    return any(found[1] != "0" for found in _EXIT_CODE.finditer(ends[:400] + "\n" + ends[-300:]))


def _output(text: str) -> tuple[str, str]:
    """What a command wrote, and what its shell says about the process."""
    header = _HEADER.match(text)
    return (text[header.end() :], header[0]) if header else (text, "")


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}"


def _line(pattern: re.Pattern[str], text: str, *, last: bool = False) -> str:
    """The first or the last line that a pattern occurs in, if it says anything."""
    found = ""
    for match in pattern.finditer(text):
        begin = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        line = text[begin : end if end >= 0 else None].strip()
        if not _BORING.fullmatch(line):
            found = line
            if not last:
                break
    return found
