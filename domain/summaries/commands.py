"""Reads shell commands: the programs they run, whether they only read, and their outcome."""

import re

from ..blocks import AnyBlock, ToolCall
from ..digest import parse_names
from .clean_text import DECORATION_PATTERN, mark_code, shorten_inside, shorten_line, tidy_line

LABEL_CHARS = 90
"""The most characters of a command or a result in a summary line."""
_MESSAGE_CHARS = 200
"""The most characters of an error."""

_READ_ONLY_COMMANDS = parse_names(
    "[ awk cat cd column cut date df diff dirname du echo env exit export fd file find grep "
    "head jq kill less ls man more nl od printenv printf ps pwd read realpath rg set sleep "
    "sort source stat strings tail tee test time top tr tree true type uniq wait wc which "
    "whoami xxd"
)
_READ_ONLY_GIT_COMMANDS = parse_names(
    "blame branch config describe diff fetch grep log ls-files ls-tree reflog remote rev-list "
    "rev-parse shortlog show show-ref status"
)
_READ_ONLY_GH_COMMANDS = frozenset({"api", "checks", "diff", "list", "status", "view"})
_WRAPPERS = frozenset({"!", "command", "do", "env", "if", "nohup", "sudo", "then", "time"})
_INTERPRETERS = re.compile(r"(?:python|node|bash|sh|ruby|perl|php)[\d.]*")
_WITH_SUBCOMMANDS = parse_names(
    "apt apt-get aws az brew bun bundle cargo composer deno docker dotnet gcloud gh git go "
    "gradle gradlew hatch helm just kubectl make mise mix mvn nox npm nx pip pnpm podman poetry "
    "rails rake rustup swift systemctl task terraform tox uv yarn"
)
_RUNNERS = frozenset({"compose", "exec", "run", "tool"})
_VERB = re.compile(r"[a-zA-Z][\w:-]*")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_SEGMENT = re.compile(r"&&|\|\||[;|\n&()]")
_LEADING = re.compile(
    r"(?:#[^\n]*\n\s*|cd\s+(?:\"[^\"]*\"|'[^']*'|\S+)\s*(?:&&|;|\n)\s*|set -\w+\s*(?:;|&&|\n)\s*"
    r"|[A-Z_]+=\S*\s+)+"
)
# How much output the agent asked for says nothing about the command.
VIEWING_PATTERN = re.compile(r"(?: ?(?:2>&1|2>/dev/null|\| ?(?:head|tail|cat|less)(?: -?\w+)*))+$")
_MAX_COMMAND_CHARS, _MAX_RUN_CHARS = 400, 4_000
_MAX_WORDS = 12

# Some shells print a few lines about the process before its output.
_HEADER = re.compile(r"(?:[A-Z][\w ]{2,40}:? [^\n]*\n){1,6}Output:\n")
_HEADER_WITHIN = 1_000
_EXIT_CODE = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?:?|<returncode>|exit_code=) ?(-?\d{1,3})\b"
)
_VERDICT = re.compile(
    r"\b(?:\d+ (?:passed|failed|passing|failing|failures?|skipped|errors?"
    r"|tests? (?:passed|failed|run))\b|test result:)|BUILD (?:SUCC|FAIL)"
    r"|^(?:(?:ok|FAIL|PASS|FAILED|OK|SUCCESS)\b|Tests?:|\[[\w/. ()-]{1,80} [0-9a-f]{7,40}\])",
    re.MULTILINE,
)
_FAILURE_COUNT = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?|tests? failed)\b|\bFAIL"
)
_CULPRIT = re.compile(
    "--- FAIL: |^FAILED \\S|^[ \t]*(?:[\u2717\u2715\u2718\u00d7]|not ok)|panicked at ",
    re.MULTILINE,
)
_TROUBLE = re.compile(
    r"\b(?:error|exception|fail(?:ed|ure)?|fatal|panic|cannot|can't|could not|unable|not found"
    r"|no such|denied|refused|undefined|unexpected|invalid|unknown|missing|does not|doesn't"
    r"|timed? ?out|conflict|rejected|abort(?:ed)?|not allowed|mismatch|assert\w*)\b",
    re.IGNORECASE,
)
_EXCEPTION_LINE = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Warning)\b", re.MULTILINE)
_UNINFORMATIVE = re.compile(
    r"(?:process )?exit(?:ed)?(?: with)? code:? \d+|<[^>]*>|error:?", re.IGNORECASE
)
_REFUSAL = re.compile(r"\s*(?:error|exception|failed|fatal|traceback)\b", re.IGNORECASE)
_TAGS = re.compile(r"\A<[\w-]+>|</[\w-]+>\Z")
_MAX_END_CHARS = 3_000
_VERDICT_WITHIN = 1_500


def shorten_command(command: str) -> str:
    """Return a command without its folder, its here-document and its output filters."""
    command = command.strip()[:_MAX_COMMAND_CHARS]
    leading = _LEADING.match(command)
    bare = command[leading.end() :] if leading else command
    return shorten_line(VIEWING_PATTERN.sub("", tidy_line(bare.partition("<<")[0])), LABEL_CHARS)


def find_targets(command: str) -> tuple[str, ...]:
    """Return the programs, with subcommands, that a command runs and that do more than read."""
    plain = _QUOTED.sub('""', command[:_MAX_RUN_CHARS].partition("<<")[0])
    programs = (_split_program(part) for part in _SEGMENT.split(plain))
    return tuple(_name_target(words) for words in programs if words and not _is_look(words))


def read_verdict(result: str, *, is_error: bool, is_look: bool) -> tuple[bool, str]:
    """Return whether a command failed, and what its output says about the outcome."""
    header = _HEADER.match(result[:_HEADER_WITHIN])
    output = result[header.end() :] if header else result
    ends = _cut_to_ends(output)
    # A command that only reads a test log has not run the tests.
    found = "" if is_look else _find_line(_VERDICT, ends[-_VERDICT_WITHIN:], last=True)
    verdict = DECORATION_PATTERN.sub("", tidy_line(found))
    is_bad = _FAILURE_COUNT.search(verdict) is not None
    if is_error or is_bad or _is_exit(header[0] if header else ends):
        culprit = tidy_line(_find_line(_CULPRIT, ends))
        told = culprit or (verdict if is_bad and " " in verdict else find_trouble(ends))
        return True, shorten_line(told, _MESSAGE_CHARS)
    return False, shorten_line(verdict, LABEL_CHARS) or shorten_result(output)


def find_trouble(text: str) -> str:
    """Return the line of a failed call's output that says most about the failure."""
    ends = _cut_to_ends(text)
    raised = _find_line(_EXCEPTION_LINE, ends, last=True) if "Traceback" in ends else ""
    telling = raised or _find_line(_TROUBLE, ends)
    if not telling:
        lines = (line.strip() for line in ends.split("\n"))
        said = (line for line in lines if line and not _UNINFORMATIVE.fullmatch(line))
        telling = next(said, "no output")
    if telling.endswith(":"):
        # The announced text is what matters.
        telling = f"{telling} {ends.partition(telling)[2].strip().partition(chr(10))[0]}"
    return shorten_inside(tidy_line(_TAGS.sub("", telling)), _MESSAGE_CHARS)


def is_failure_text(text: str) -> bool:
    """Check whether a tool's text reports a failure that nothing else reports."""
    return _REFUSAL.match(text[:_MESSAGE_CHARS]) is not None


def shorten_result(text: str) -> str:
    """Return a result if it is short enough to be its own summary, else an empty text."""
    line = tidy_line(text) if len(text) <= _MAX_COMMAND_CHARS else ""
    return line if 0 < len(line) <= LABEL_CHARS and line[0] not in "{[<(" else ""


def _split_program(part: str) -> list[str]:
    words = part.split(maxsplit=_MAX_WORDS)[:_MAX_WORDS]
    while words and (words[0] in _WRAPPERS or "=" in words[0]):
        words = words[1:]
    return words[2:] if words[:1] == ["timeout"] else words


def _is_look(words: list[str]) -> bool:
    program = words[0].rpartition("/")[2]
    if program == "git":
        verbs = [word for word in words[1:] if not word.startswith("-") and "/" not in word]
        return not verbs or verbs[0] in _READ_ONLY_GIT_COMMANDS
    if program == "sed":
        return not any(word.startswith("-i") for word in words)
    if program == "gh":
        return not _READ_ONLY_GH_COMMANDS.isdisjoint(words)
    return program in _READ_ONLY_COMMANDS


def _name_target(words: list[str]) -> str:
    """Return the program and subcommand, or the script that an interpreter runs."""
    program = words[0].rpartition("/")[2]
    rest = [word for word in words[1:] if not word.startswith("-")]
    if _INTERPRETERS.fullmatch(program):
        return " ".join([program, *rest[:1]])
    if program not in _WITH_SUBCOMMANDS:
        return program
    verbs: list[str] = []
    for word in rest[:2]:
        if not _VERB.fullmatch(word):
            break
        verbs.append(word)
        if word not in _RUNNERS:
            break
    return " ".join([program, *verbs])


def _is_exit(text: str) -> bool:
    ends = f"{text[:400]}\n{text[-300:]}".lower()
    return any(code != "0" for code in _EXIT_CODE.findall(ends))


def _cut_to_ends(text: str) -> str:
    if len(text) <= 2 * _MAX_END_CHARS:
        return text
    return f"{text[:_MAX_END_CHARS]}\n{text[-_MAX_END_CHARS:]}"


def _find_line(pattern: re.Pattern[str], text: str, *, last: bool = False) -> str:
    """Return the first or last informative line that matches a pattern; empty if there is none."""
    matches = pattern.finditer(text)
    for match in reversed(list(matches)) if last else matches:
        begin = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        line = text[begin : end if end >= 0 else None].strip()
        if not _UNINFORMATIVE.fullmatch(line):
            return line
    return ""


# Repositories

_REPOSITORY = {
    "branch": re.compile(
        r"^(?:On branch |Switched to (?:a new )?branch '"
        r"|\[(?=\S+ (?:\(root-commit\) )?[0-9a-f]{7,40}\]))([\w./-]+)",
        re.MULTILINE,
    ),
    "commit": re.compile(
        r"^\[[\w./-]+ (?:\(root-commit\) )?([0-9a-f]{7,40})\] (.+)$", re.MULTILINE
    ),
    "pull request": re.compile(r"https://[\w./-]+/(?:pull|merge_requests)/\d+"),
}
"""What the output of git and of its hosts' programs says of a repository."""
_GIT = re.compile(r"\b(?:git|gh|glab)\b")


def uses_git(call: ToolCall) -> bool:
    return _GIT.search(call.arguments) is not None


def read_repository(result: AnyBlock) -> dict[str, str]:
    """Return the newest that the output of a command says of a repository, by its name."""
    found = {
        name: " ".join(newest.groups()) or newest[0]
        for name, pattern in _REPOSITORY.items()
        for newest in [*pattern.finditer(result.text)][-1:]
    }
    return {name: mark_code(tidy_line(words)) for name, words in found.items()}
