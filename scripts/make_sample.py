"""Makes the long sample session that cutbank ships: an invented Claude Code transcript.

usage: scripts/make_sample.py
"""

import difflib
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from string import Template
from typing import Any, TypeVar

import sample_story as told
import zstandard

SAMPLE_FILE = Path(__file__).parents[1] / "adapters/interfaces/sample.jsonl.zst"
SAMPLE_FOLDER = "/srv/orchard"
SAMPLE_START = datetime(2026, 3, 10, 8, 14, 7, 212000, tzinfo=UTC)
SYSTEM_PROMPT_TOKENS = 11_840
"""Tokens that every call sends before the user's first message."""
ID_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"
_T = TypeVar("_T")


def make_sample() -> bytes:
    """Return the session as JSON lines; the bytes are always the same."""
    dice = SeededRandom(20260310)
    shop, transcript = SampleShop(dice), SampleTranscript(dice)
    for step in make_script():
        if step.is_by_user:
            transcript.write_prompt(step.text)
        else:
            transcript.write_answer(step, [shop.answer(call) for call in step.calls])
    return "".join(transcript.lines).encode("utf-8")


class SeededRandom:
    """Random values from a seed. Only `random` is guaranteed to stay the same, so nothing else is
    used.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random  # noqa: S311 - nothing here is secret

    def pick_number(self, low: int, high: int) -> int:
        return low + int(self.random() * (high - low + 1))

    def pick(self, items: Sequence[_T]) -> _T:
        return items[self.pick_number(0, len(items) - 1)]

    def make_text(self, length: int, letters: str = ID_LETTERS) -> str:
        return "".join(self.pick(letters) for _ in range(length))

    def make_hex(self, length: int) -> str:
        return self.make_text(length, "0123456789abcdef")

    def make_uuid(self) -> str:
        return (
            f"{self.make_hex(8)}-{self.make_hex(4)}-4{self.make_hex(3)}-a{self.make_hex(3)}"
            f"-{self.make_hex(12)}"
        )

    def fill_numbers(self, text: str) -> str:
        """Replace each `{low-high}` by a number, and each `{}` by hex digits."""
        text = re.sub(
            r"\{(\d+)-(\d+)\}", lambda m: f"{self.pick_number(int(m[1]), int(m[2]))}", text
        )
        return re.sub(r"\{\}", lambda _: self.make_hex(12), text)


@dataclass(frozen=True)
class SampleCall:
    """A tool call. The shop answers it, unless the story has its result."""

    tool: str
    input: dict[str, Any]
    output: str = ""
    error: str = ""
    """The error: `test: error` for pytest, else the output."""


@dataclass
class SampleStep:
    """A user message, or one message of the agent."""

    is_by_user: bool
    text: str
    thinking: str = ""
    calls: list[SampleCall] = field(default_factory=list)


class SampleToolError(Exception):
    """An error that a tool returns."""


def parse_areas() -> dict[str, list[dict[str, str]]]:
    """Return the words of each verb by area; they fill the templates."""
    found: dict[str, list[dict[str, str]]] = {}
    area: dict[str, str] = {}
    for line in told.AREAS_TEXT.splitlines():
        first, second, third, *rest = line.split("|")
        if second.istitle():
            columns = ", ".join(re.findall(r"(\w+):", f"{rest[1]} {third}:"))
            area = {"area": first, "Thing": second, "thing": second.lower(), "clock": third}
            area |= {"flaws": rest[0], "columns": columns, "a": "an" if second[0] in "IO" else "a"}
            found[first] = []
        else:
            source, target = second.split(">")
            verb = {"verb": first, "source": source, "target": target, "guard": third}
            found[area["area"]].append(area | verb | {"refusal": rest[0], "doc": rest[1]})
    return found


AREA_WORDS = parse_areas()


def fill_template(template: str, area: str, **more: str) -> str:
    return Template(template).substitute(AREA_WORDS[area][0] | more)


def find_flaw(area: str, name: str) -> list[str]:
    """Return the flaw, the correct code, and the name, action and assertion of its test."""
    lines = (line.split("|") for line in told.FLAWS.splitlines())
    return next(
        [fill_template(text, area) for text in texts] for flaw, *texts in lines if flaw == name
    )


def make_files() -> dict[str, str]:
    """Return the initial files of the shop: path to text."""
    found = dict(told.OTHERS)
    for area, verbs in AREA_WORDS.items():
        methods = "".join(Template(told.METHOD).substitute(words) for words in verbs)
        money = told.SHARE_METHOD if "_pence" in verbs[0]["columns"] else ""
        service = (
            fill_template(told.SERVICE, area) + methods + money + fill_template(told.REST, area)
        )
        for flaw in verbs[0]["flaws"].split():
            wrong, right, *_ = find_flaw(area, flaw)
            service = service.replace(right, wrong, 1)
        tests = "".join(Template(told.TESTS).substitute(words) for words in verbs)
        found[f"orchard/{area}/repository.py"] = fill_template(told.REPOSITORY, area)
        found[f"orchard/{area}/service.py"] = service
        found[f"tests/test_{area}.py"] = fill_template(told.TEST_HEAD, area) + tests
    return found


def make_script() -> list[SampleStep]:
    """Return the steps of the story, including the audit's visits."""
    visits = ""
    for line in told.FINDINGS.replace("\n|", "|").splitlines():
        area, flaws, thought, finding = line.split("|")
        mends = "".join(f"@\n: Mend {area} {flaw}\n" for flaw in flaws.split())
        more = {"mends": mends, "mishap": told.MISHAPS.get(area, "")}
        visits += fill_template(told.AUDIT, area, thought=thought, finding=finding, **more)
    steps: list[SampleStep] = []
    call: list[tuple[str, str]] = []
    for line in [*told.STORY.replace("$audit", visits).strip().splitlines(), "@"]:
        mark, _, rest = line.partition(" ")
        if call and mark in {"@", "&", ":"}:
            steps[-1].calls += parse_calls(call)
            call = []
        if mark in {"@", "&"}:
            steps.append(SampleStep(mark == "&", rest))
        elif mark == ":" or call:
            call += [(mark, rest)] if line else []
        elif mark == "?":
            steps[-1].thinking = f"{steps[-1].thinking} {rest}".strip()
        else:
            gap = "\n" if mark == "-" or not line or steps[-1].text.endswith("\n") else " "
            steps[-1].text += gap + line
    return steps[:-1]


def parse_calls(lines: list[tuple[str, str]]) -> list[SampleCall]:
    """Parse the calls of one `:` line and the lines below it."""
    (_, head), *below = lines
    tool, _, rest = head.partition(" ")
    old, new, text, says, fails = (
        "\n".join(line for mark, line in below if mark == wanted) for wanted in "<>+|!"
    )
    match tool:
        case "Mend":
            area, flaw = rest.split()
            wrong, right, name, act, fact = find_flaw(area, flaw)
            anchor = fill_template(told.TEST_HEAD, area).splitlines()[-1]
            proof = anchor + "\n" + fill_template(told.PROOF, area, name=name, act=act, fact=fact)
            service, tests = f"orchard/{area}/service.py", f"tests/test_{area}.py"
            return [make_edit_call(service, wrong, right), make_edit_call(tests, anchor, proof)]
        case "Edit":
            return [make_edit_call(rest, old, new)]
        case "Write":
            return [
                SampleCall(tool, {"file_path": f"{SAMPLE_FOLDER}/{rest}", "content": f"{text}\n"})
            ]
        case "Read":
            path, *span = rest.split()
            window = dict(zip(("offset", "limit"), map(int, span), strict=False))
            return [SampleCall(tool, {"file_path": f"{SAMPLE_FOLDER}/{path}"} | window)]
        case "Grep":
            pattern, _, path = rest.rpartition(" ")
            where = {"path": path, "output_mode": "content", "-n": True}
            return [SampleCall(tool, {"pattern": re.escape(pattern)} | where)]
        case "Todo":
            states = {"x": "completed", ">": "in_progress", "-": "pending"}
            items = [{"content": t, "status": states[s], "activeForm": t} for s, t in below]
            return [SampleCall("TodoWrite", {"todos": items})]
        case "Plan":
            says = fill_template(told.PLAN, rest)
            query = fill_template(told.QUERY, rest)
            rest = f'psql shop -c "EXPLAIN (ANALYZE, BUFFERS) {query}" # Plan of the {rest} job'
    command, _, why = rest.rpartition(" # ")
    return [SampleCall("Bash", {"command": command, "description": why}, says, fails)]


def make_edit_call(path: str, old: str, new: str) -> SampleCall:
    return SampleCall(
        "Edit", {"file_path": f"{SAMPLE_FOLDER}/{path}", "old_string": old, "new_string": new}
    )


class SampleShop:
    """The shop's files, and tools that read and edit them."""

    def __init__(self, dice: SeededRandom) -> None:
        self.dice = dice
        self.files = make_files()
        self.committed = dict(self.files)
        self.todos: list[Any] = []
        self.at = SAMPLE_START - timedelta(hours=11)

    def answer(self, call: SampleCall) -> tuple[str, Any, bool]:
        """Return the result for the model, `toolUseResult`, and whether it is an error."""
        given = call.input
        path = str(given.get("file_path", "")).removeprefix(f"{SAMPLE_FOLDER}/")
        detail: dict[str, Any]
        try:
            match call.tool:
                case "Read":
                    return *self.read(path, given.get("offset", 1), given.get("limit", 2000)), False
                case "Edit":
                    return *self.edit(path, given["old_string"], given["new_string"]), False
                case "Write":
                    self.files[path] = given["content"]
                    detail = {"type": "create", "filePath": f"{SAMPLE_FOLDER}/{path}"}
                    done = f"File created successfully at: {SAMPLE_FOLDER}/{path}"
                    return done, detail | {"content": given["content"]}, False
                case "Grep":
                    found = "\n".join(self.grep(given["pattern"], given["path"]))
                    detail = {"mode": "content", "numFiles": 0, "filenames": [], "content": found}
                    return found or "No matches found", detail, False
                case "TodoWrite":
                    before, self.todos = self.todos, given["todos"]
                    return told.TODO_DONE, {"oldTodos": before, "newTodos": self.todos}, False
                case _:
                    out = self.run(call)
                    detail = {"stdout": out, "stderr": "", "interrupted": False, "isImage": False}
                    return out, detail, False
        except SampleToolError as error:
            return str(error), f"Error: {re.sub('</?tool_use_error>', '', str(error))}", True

    def read(self, path: str, offset: int, limit: int) -> tuple[str, Any]:
        if path not in self.files:
            raise SampleToolError("<tool_use_error>File does not exist.</tool_use_error>")
        lines = self.files[path].splitlines()
        shown = lines[offset - 1 : offset - 1 + limit]
        file = {
            "filePath": f"{SAMPLE_FOLDER}/{path}",
            "content": "\n".join(shown),
            "startLine": offset,
        }
        text = "\n".join(f"{number:>6}→{line}" for number, line in enumerate(shown, offset))
        return text, {"type": "text", "file": file | {"totalLines": len(lines)}}

    def edit(self, path: str, old: str, new: str) -> tuple[str, Any]:
        before = self.files[path]
        if before.count(old) != 1:
            said = f"String to replace not found in file.\nString: {old}"
            raise SampleToolError(f"<tool_use_error>{said}</tool_use_error>")
        self.files[path] = before.replace(old, new)
        detail = {"filePath": f"{SAMPLE_FOLDER}/{path}", "oldString": old, "newString": new}
        more = {"originalFile": before, "userModified": False, "replaceAll": False}
        return f"The file {SAMPLE_FOLDER}/{path} has been updated successfully.", detail | more

    def grep(self, pattern: str, below: str) -> Iterator[str]:
        for path, text in sorted(self.files.items()):
            for number, line in enumerate(text.splitlines(), 1):
                if path.startswith(below.removeprefix(".")) and re.search(pattern, line):
                    yield f"{path}:{number}:{line}"

    def run(self, call: SampleCall) -> str:
        """Return a command's output. Raises SampleToolError if the command fails."""
        command = call.input["command"]
        lines: Iterable[str] = ()
        match command.split():
            case ["pytest", *_]:
                lines = self.run_tests(re.findall(r"tests/\S+", command), call.error)
            case ["tail", "-n", count, path]:
                lines = self.log(path[5:-4], int(count))
            case ["python", "ops/load.py", *_]:
                lines = self.run_load_test()
            case ["git", "diff"]:
                lines = self.diff()
            case ["git", "status", *_]:
                marks = {path: " M" if path in self.committed else "??" for path in self.files}
                lines = (f"{marks[path]} {path}" for path in self.changed_files())
        out = "\n".join(lines) or self.dice.fill_numbers(call.output) or call.error
        if call.error:
            raise SampleToolError(f"Exit code 1\n{out}")
        if "git commit" in command:
            narrow = "" if "add -A" in command else "stock|orders"
            self.committed |= {
                p: self.files[p] for p in self.changed_files() if re.search(narrow, p)
            }
        return out

    def changed_files(self) -> list[str]:
        return sorted(p for p, text in self.files.items() if text != self.committed.get(p))

    def diff(self) -> Iterator[str]:
        for path in self.changed_files():
            old, new = self.committed.get(path, "").splitlines(), self.files[path].splitlines()
            yield f"diff --git a/{path} b/{path}"
            yield from difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm="")

    def log(self, area: str, count: int) -> Iterator[str]:
        stanzas = told.LOG.split("\n\n") if area in AREA_WORDS else [told.SLOW_LOG]
        verbs = AREA_WORDS.get(area, AREA_WORDS["orders"])
        lines: list[str] = []
        while len(lines) < count:
            words, row = self.dice.pick(verbs), str(self.dice.pick_number(70_000, 73_999))
            is_fresh = "fresh" in words["flaws"] and words is verbs[0]
            stanza = Template(self.dice.pick(stanzas))
            text = stanza.substitute(words, id=row, part="{}" if is_fresh else row)
            lines += self.dice.fill_numbers(text).splitlines()
        for line in lines[:count]:
            self.at += timedelta(milliseconds=self.dice.pick_number(4, 1_900))
            yield f"{format_stamp(self.at)} {line}"

    def run_load_test(self) -> Iterator[str]:
        yield f"{'request':<40}{'count':>8}{'p50 ms':>8}{'p95 ms':>8}{'p99 ms':>8}{'errors':>8}"
        for area, verbs in AREA_WORDS.items():
            is_slow = find_flaw(area, "n+1")[0] in self.files[f"orchard/{area}/service.py"]
            usual = {words["verb"]: 96 for words in verbs} | {"overview": 640 if is_slow else 118}
            for name, least in usual.items():
                p95 = least + self.dice.pick_number(0, 50)
                figures = (2_400, p95 * 2 // 5, p95, p95 * 8 // 5, 0)
                yield f"{f'/{area}/{name}':<40}" + "".join(f"{figure:>8}" for figure in figures)

    def run_tests(self, paths: list[str], fails: str) -> Iterator[str]:
        broken, _, error = fails.partition(": ")
        tests = [
            (path, name)
            for path in paths or sorted(self.files)
            for name in re.findall(r"^def (test_\w+)", self.files[path], re.MULTILINE)
        ]
        yield f"{' test session starts ':=^80}"
        yield "platform linux -- Python 3.12.4, pytest-8.3.3, pluggy-1.5.0"
        yield (
            f"rootdir: {SAMPLE_FOLDER}\nconfigfile: pyproject.toml\ncollected {len(tests)} items\n"
        )
        for count, (path, name) in enumerate(tests, 1):
            outcome = "FAILED" if name == broken else "PASSED"
            yield f"{path}::{name} {outcome} [{100 * count // len(tests):>3}%]"
        for path, name in tests:
            if name == broken:
                yield f"\n{' FAILURES ':=^80}\n{f' {name} ':_^80}\n"
                _, start, rest = self.files[path].partition(f"def {name}")
                yield start + rest.partition("\n\n\n")[0]
                yield f"E       {error}\n\n{' short test summary info ':=^80}"
                yield f"FAILED {path}::{name} - {error}"
        counts = f"1 failed, {len(tests) - 1} passed" if broken else f"{len(tests)} passed"
        yield f"{self.dice.fill_numbers(f' {counts} in {{1-6}}.{{10-99}}s '):=^80}"


def format_stamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class SampleTranscript:
    """Lines as Claude Code writes them: split messages, streamed usage, results in between."""

    def __init__(self, dice: SeededRandom) -> None:
        self.dice = dice
        self.lines: list[str] = []
        self.session = dice.make_uuid()
        self.last: str | None = None
        self.at = self.asked = SAMPLE_START
        self.cached = 0
        self.seen = 0
        """Characters that the model has read or written so far."""

    def write_entry(self, kind: str, parent: str | None, **more: Any) -> str:
        """Write one entry of the conversation's chain; return its uuid."""
        self.at += timedelta(milliseconds=self.dice.pick_number(180, 2_900))
        envelope = {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": SAMPLE_FOLDER,
            "sessionId": self.session,
            "version": "2.1.39",
            "gitBranch": "main",
            "type": kind,
        }
        self.last = self.dice.make_uuid()
        self.write_line(envelope | more | {"uuid": self.last, "timestamp": format_stamp(self.at)})
        return self.last

    def write_line(self, entry: dict[str, Any]) -> None:
        self.lines.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")

    def write_prompt(self, text: str) -> None:
        """Write a user prompt and its snapshot."""
        self.at += timedelta(seconds=self.dice.pick_number(40, 1_500))
        self.asked = self.at
        self.seen += len(text)
        message = self.write_entry("user", self.last, message={"role": "user", "content": text})
        shot = {"messageId": message, "trackedFileBackups": {}, "timestamp": format_stamp(self.at)}
        snapshot = {"messageId": message, "snapshot": shot, "isSnapshotUpdate": False}
        self.write_line({"type": "file-history-snapshot"} | snapshot)

    def write_answer(self, step: SampleStep, answers: list[tuple[str, Any, bool]]) -> None:
        """Write one message of the agent, a line for each block, and the results of its calls."""
        blocks = self.make_blocks(step)
        written = sum(len(json.dumps(block, ensure_ascii=False)) for block in blocks) // 4
        message, request = f"msg_01{self.dice.make_text(22)}", f"req_011C{self.dice.make_text(20)}"
        context = SYSTEM_PROMPT_TOKENS + self.seen // 4
        usage = {
            "input_tokens": self.dice.pick_number(3, 9),
            "cache_creation_input_tokens": context - self.cached,
            "cache_read_input_tokens": self.cached,
            "output_tokens": self.dice.pick_number(1, 8),
            "service_tier": "standard",
        }
        self.cached = context
        self.at += timedelta(seconds=self.dice.pick_number(2, 14))
        open_calls: list[tuple[str, str, tuple[str, Any, bool]]] = []
        waiting = iter(answers)
        parent = self.last
        for block in blocks:
            is_last = block is blocks[-1]
            stop = "tool_use" if answers else "end_turn"
            said = {
                "model": "claude-sonnet-4-5-20250929",
                "id": message,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": stop if is_last else None,
                "stop_sequence": None,
                "usage": usage | ({"output_tokens": written} if is_last else {}),
            }
            parent = self.write_entry("assistant", parent, message=said, requestId=request)
            if block["type"] == "tool_use":
                open_calls.append((parent, block["id"], next(waiting)))
            if len(open_calls) > 1 and self.dice.random() < 0.5:
                self.write_result(*open_calls.pop(0))
        for call in open_calls:
            self.write_result(*call)
        if not answers:
            took = int((self.at - self.asked) / timedelta(milliseconds=1))
            self.write_entry(
                "system", self.last, subtype="turn_duration", durationMs=took, isMeta=False
            )

    def make_blocks(self, step: SampleStep) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        if step.thinking:
            made_up = b64encode(
                f"made up for a sample: {self.dice.make_text(160)}".encode()
            ).decode()
            found.append({"type": "thinking", "thinking": step.thinking, "signature": made_up})
        if step.text:
            found.append({"type": "text", "text": step.text})
        for call in step.calls:
            use = {"type": "tool_use", "id": f"toolu_01{self.dice.make_text(22)}"}
            found.append(use | {"name": call.tool, "input": call.input})
        self.seen += len(step.thinking) + len(step.text)
        self.seen += sum(len(json.dumps(call.input, ensure_ascii=False)) for call in step.calls)
        return found

    def write_result(self, caller: str, call_id: str, answer: tuple[str, Any, bool]) -> None:
        text, detail, is_error = answer
        self.seen += len(text)
        parent = caller
        if "test session starts" in text[:100]:
            self.at += timedelta(seconds=2)
            data = {"type": "bash_progress", "output": "", "elapsedTimeSeconds": 2}
            more = {"toolUseID": "bash-progress-0", "parentToolUseID": call_id}
            parent = self.write_entry("progress", parent, data=data, **more)
        block: dict[str, Any] = {"tool_use_id": call_id, "type": "tool_result", "content": text}
        message = {"role": "user", "content": [block | ({"is_error": True} if is_error else {})]}
        more = {"toolUseResult": detail, "sourceToolAssistantUUID": caller}
        self.write_entry("user", parent, message=message, **more)


if __name__ == "__main__":
    SAMPLE_FILE.write_bytes(zstandard.compress(make_sample(), 19))
