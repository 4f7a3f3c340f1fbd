"""Writes the long agent session that cutbank ships: a Claude Code transcript, all invented."""

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

from . import sample_story as told

CWD = "/srv/orchard"
BEGINS = datetime(2026, 3, 10, 8, 14, 7, 212000, tzinfo=UTC)
SYSTEM_PROMPT = 11_840
"""Tokens that every call sends before the user's first word."""
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"
T = TypeVar("T")


def write_sample(path: Path) -> None:
    """Write the session: the same bytes everywhere and always."""
    dice = Dice(20260310)
    shop, transcript = Shop(dice), Transcript(dice)
    for step in script():
        if step.by_user:
            transcript.ask(step.text)
        else:
            transcript.answer(step, [shop.answer(call) for call in step.calls])
    path.write_text("".join(transcript.lines), encoding="utf-8", newline="\n")


class Dice:
    """Chance from a seed. Only `random` is promised to stay the same, so nothing else is used."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random  # noqa: S311 - nothing here is secret

    def number(self, low: int, high: int) -> int:
        return low + int(self.random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        return items[self.number(0, len(items) - 1)]

    def text(self, length: int, letters: str = LETTERS) -> str:
        return "".join(self.pick(letters) for _ in range(length))

    def hex(self, length: int) -> str:
        return self.text(length, "0123456789abcdef")

    def uuid(self) -> str:
        return f"{self.hex(8)}-{self.hex(4)}-4{self.hex(3)}-a{self.hex(3)}-{self.hex(12)}"

    def vary(self, text: str) -> str:
        """The text with a number for each `{low-high}`, and hex digits for `{}`."""
        text = re.sub(r"\{(\d+)-(\d+)\}", lambda m: f"{self.number(int(m[1]), int(m[2]))}", text)
        return re.sub(r"\{\}", lambda _: self.hex(12), text)


@dataclass(frozen=True)
class Call:
    """A call of a tool. The shop answers it, unless the story says what comes of it."""

    tool: str
    input: dict[str, Any]
    says: str = ""
    fails: str = ""
    """What goes wrong: of pytest `test: error`, of anything else the output."""


@dataclass
class Step:
    """What the user says, or one message of the agent."""

    by_user: bool
    text: str
    thinking: str = ""
    calls: list[Call] = field(default_factory=list)


class ToolError(Exception):
    """What a tool says in place of a result."""


def areas() -> dict[str, list[dict[str, str]]]:
    """For each area the words of each of its verbs; they fill the templates."""
    found: dict[str, list[dict[str, str]]] = {}
    area: dict[str, str] = {}
    for line in told.AREAS.splitlines():
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


AREAS = areas()


def fill(template: str, area: str, **more: str) -> str:
    return Template(template).substitute(AREAS[area][0] | more)


def flaw_of(area: str, name: str) -> list[str]:
    """What is wrong there, what would be right, and the name, deed and claim of its test."""
    lines = (line.split("|") for line in told.FLAWS.splitlines())
    return next([fill(text, area) for text in texts] for flaw, *texts in lines if flaw == name)


def files() -> dict[str, str]:
    """The shop as the session finds it: path to text."""
    found = dict(told.OTHERS)
    for area, verbs in AREAS.items():
        methods = "".join(Template(told.METHOD).substitute(words) for words in verbs)
        money = told.SHARE if "_pence" in verbs[0]["columns"] else ""
        service = fill(told.SERVICE, area) + methods + money + fill(told.REST, area)
        for flaw in verbs[0]["flaws"].split():
            wrong, right, *_ = flaw_of(area, flaw)
            service = service.replace(right, wrong, 1)
        tests = "".join(Template(told.TESTS).substitute(words) for words in verbs)
        found[f"orchard/{area}/repository.py"] = fill(told.REPOSITORY, area)
        found[f"orchard/{area}/service.py"] = service
        found[f"tests/test_{area}.py"] = fill(told.TEST_HEAD, area) + tests
    return found


def script() -> list[Step]:
    """The story step by step, with the audit's visits where they belong."""
    visits = ""
    for line in told.FINDINGS.replace("\n|", "|").splitlines():
        area, flaws, thought, finding = line.split("|")
        mends = "".join(f"@\n: Mend {area} {flaw}\n" for flaw in flaws.split())
        more = {"mends": mends, "mishap": told.MISHAPS.get(area, "")}
        visits += fill(told.AUDIT, area, thought=thought, finding=finding, **more)
    steps: list[Step] = []
    call: list[tuple[str, str]] = []
    for line in [*told.STORY.replace("$audit", visits).strip().splitlines(), "@"]:
        mark, _, rest = line.partition(" ")
        if call and mark in {"@", "&", ":"}:
            steps[-1].calls += calls(call)
            call = []
        if mark in {"@", "&"}:
            steps.append(Step(mark == "&", rest))
        elif mark == ":" or call:
            call += [(mark, rest)] if line else []
        elif mark == "?":
            steps[-1].thinking = f"{steps[-1].thinking} {rest}".strip()
        else:
            gap = "\n" if mark == "-" or not line or steps[-1].text.endswith("\n") else " "
            steps[-1].text += gap + line
    return steps[:-1]


def calls(lines: list[tuple[str, str]]) -> list[Call]:
    """The calls of one `:` line and the lines below it."""
    (_, head), *below = lines
    tool, _, rest = head.partition(" ")
    old, new, text, says, fails = (
        "\n".join(line for mark, line in below if mark == wanted) for wanted in "<>+|!"
    )
    match tool:
        case "Mend":
            area, flaw = rest.split()
            wrong, right, name, act, fact = flaw_of(area, flaw)
            anchor = fill(told.TEST_HEAD, area).splitlines()[-1]
            proof = anchor + "\n" + fill(told.PROOF, area, name=name, act=act, fact=fact)
            service, tests = f"orchard/{area}/service.py", f"tests/test_{area}.py"
            return [edit(service, wrong, right), edit(tests, anchor, proof)]
        case "Edit":
            return [edit(rest, old, new)]
        case "Write":
            return [Call(tool, {"file_path": f"{CWD}/{rest}", "content": f"{text}\n"})]
        case "Read":
            path, *span = rest.split()
            window = dict(zip(("offset", "limit"), map(int, span), strict=False))
            return [Call(tool, {"file_path": f"{CWD}/{path}"} | window)]
        case "Grep":
            pattern, _, path = rest.rpartition(" ")
            where = {"path": path, "output_mode": "content", "-n": True}
            return [Call(tool, {"pattern": re.escape(pattern)} | where)]
        case "Todo":
            states = {"x": "completed", ">": "in_progress", "-": "pending"}
            items = [{"content": t, "status": states[s], "activeForm": t} for s, t in below]
            return [Call("TodoWrite", {"todos": items})]
        case "Plan":
            says = fill(told.PLAN, rest)
            query = fill(told.QUERY, rest)
            rest = f'psql shop -c "EXPLAIN (ANALYZE, BUFFERS) {query}" # Plan of the {rest} job'
    command, _, why = rest.rpartition(" # ")
    return [Call("Bash", {"command": command, "description": why}, says, fails)]


def edit(path: str, old: str, new: str) -> Call:
    return Call("Edit", {"file_path": f"{CWD}/{path}", "old_string": old, "new_string": new})


class Shop:
    """The shop's files, and tools that work on them: what was edited reads so ever after."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.files = files()
        self.committed = dict(self.files)
        self.todos: list[Any] = []
        self.at = BEGINS - timedelta(hours=11)

    def answer(self, call: Call) -> tuple[str, Any, bool]:
        """The result as the model sees it, `toolUseResult`, and whether it is an error."""
        given = call.input
        path = str(given.get("file_path", "")).removeprefix(f"{CWD}/")
        detail: dict[str, Any]
        try:
            match call.tool:
                case "Read":
                    return *self.read(path, given.get("offset", 1), given.get("limit", 2000)), False
                case "Edit":
                    return *self.edit(path, given["old_string"], given["new_string"]), False
                case "Write":
                    self.files[path] = given["content"]
                    detail = {"type": "create", "filePath": f"{CWD}/{path}"}
                    done = f"File created successfully at: {CWD}/{path}"
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
        except ToolError as error:
            return str(error), f"Error: {re.sub('</?tool_use_error>', '', str(error))}", True

    def read(self, path: str, offset: int, limit: int) -> tuple[str, Any]:
        if path not in self.files:
            raise ToolError("<tool_use_error>File does not exist.</tool_use_error>")
        lines = self.files[path].splitlines()
        shown = lines[offset - 1 : offset - 1 + limit]
        file = {"filePath": f"{CWD}/{path}", "content": "\n".join(shown), "startLine": offset}
        text = "\n".join(f"{number:>6}→{line}" for number, line in enumerate(shown, offset))
        return text, {"type": "text", "file": file | {"totalLines": len(lines)}}

    def edit(self, path: str, old: str, new: str) -> tuple[str, Any]:
        before = self.files[path]
        if before.count(old) != 1:
            said = f"String to replace not found in file.\nString: {old}"
            raise ToolError(f"<tool_use_error>{said}</tool_use_error>")
        self.files[path] = before.replace(old, new)
        detail = {"filePath": f"{CWD}/{path}", "oldString": old, "newString": new}
        more = {"originalFile": before, "userModified": False, "replaceAll": False}
        return f"The file {CWD}/{path} has been updated successfully.", detail | more

    def grep(self, pattern: str, below: str) -> Iterator[str]:
        for path, text in sorted(self.files.items()):
            for number, line in enumerate(text.splitlines(), 1):
                if path.startswith(below.removeprefix(".")) and re.search(pattern, line):
                    yield f"{path}:{number}:{line}"

    def run(self, call: Call) -> str:
        """What a command prints; what it fails with is raised."""
        command = call.input["command"]
        lines: Iterable[str] = ()
        match command.split():
            case ["pytest", *_]:
                lines = self.suite(re.findall(r"tests/\S+", command), call.fails)
            case ["tail", "-n", count, path]:
                lines = self.log(path[5:-4], int(count))
            case ["python", "ops/load.py", *_]:
                lines = self.load()
            case ["git", "diff"]:
                lines = self.diff()
            case ["git", "status", *_]:
                marks = {path: " M" if path in self.committed else "??" for path in self.files}
                lines = (f"{marks[path]} {path}" for path in self.changed())
        out = "\n".join(lines) or self.dice.vary(call.says) or call.fails
        if call.fails:
            raise ToolError(f"Exit code 1\n{out}")
        if "git commit" in command:
            narrow = "" if "add -A" in command else "stock|orders"
            self.committed |= {p: self.files[p] for p in self.changed() if re.search(narrow, p)}
        return out

    def changed(self) -> list[str]:
        return sorted(p for p, text in self.files.items() if text != self.committed.get(p))

    def diff(self) -> Iterator[str]:
        for path in self.changed():
            old, new = self.committed.get(path, "").splitlines(), self.files[path].splitlines()
            yield f"diff --git a/{path} b/{path}"
            yield from difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm="")

    def log(self, area: str, count: int) -> Iterator[str]:
        stanzas = told.LOG.split("\n\n") if area in AREAS else [told.SLOW_LOG]
        verbs = AREAS.get(area, AREAS["orders"])
        lines: list[str] = []
        while len(lines) < count:
            words, row = self.dice.pick(verbs), str(self.dice.number(70_000, 73_999))
            is_fresh = "fresh" in words["flaws"] and words is verbs[0]
            stanza = Template(self.dice.pick(stanzas))
            text = stanza.substitute(words, id=row, part="{}" if is_fresh else row)
            lines += self.dice.vary(text).splitlines()
        for line in lines[:count]:
            self.at += timedelta(milliseconds=self.dice.number(4, 1_900))
            yield f"{stamp(self.at)} {line}"

    def load(self) -> Iterator[str]:
        yield f"{'request':<40}{'count':>8}{'p50 ms':>8}{'p95 ms':>8}{'p99 ms':>8}{'errors':>8}"
        for area, verbs in AREAS.items():
            is_slow = flaw_of(area, "n+1")[0] in self.files[f"orchard/{area}/service.py"]
            usual = {words["verb"]: 96 for words in verbs} | {"overview": 640 if is_slow else 118}
            for name, least in usual.items():
                p95 = least + self.dice.number(0, 50)
                figures = (2_400, p95 * 2 // 5, p95, p95 * 8 // 5, 0)
                yield f"{f'/{area}/{name}':<40}" + "".join(f"{figure:>8}" for figure in figures)

    def suite(self, paths: list[str], fails: str) -> Iterator[str]:
        broken, _, error = fails.partition(": ")
        tests = [
            (path, name)
            for path in paths or sorted(self.files)
            for name in re.findall(r"^def (test_\w+)", self.files[path], re.MULTILINE)
        ]
        yield f"{' test session starts ':=^80}"
        yield "platform linux -- Python 3.12.4, pytest-8.3.3, pluggy-1.5.0"
        yield f"rootdir: {CWD}\nconfigfile: pyproject.toml\ncollected {len(tests)} items\n"
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
        yield f"{self.dice.vary(f' {counts} in {{1-6}}.{{10-99}}s '):=^80}"


def stamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Transcript:
    """Lines as Claude Code writes them: split messages, streamed usage, results in between."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.lines: list[str] = []
        self.session = dice.uuid()
        self.last: str | None = None
        self.at = self.asked = BEGINS
        self.cached = 0
        self.seen = 0
        """Characters that the model saw or wrote so far."""

    def put(self, kind: str, parent: str | None, **more: Any) -> str:
        """Write one entry of the conversation's chain; returns its uuid."""
        self.at += timedelta(milliseconds=self.dice.number(180, 2_900))
        envelope = {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": CWD,
            "sessionId": self.session,
            "version": "2.1.39",
            "gitBranch": "main",
            "type": kind,
        }
        self.last = self.dice.uuid()
        self.line(envelope | more | {"uuid": self.last, "timestamp": stamp(self.at)})
        return self.last

    def line(self, entry: dict[str, Any]) -> None:
        self.lines.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")

    def ask(self, text: str) -> None:
        """A prompt of the user, and the snapshot that comes with it."""
        self.at += timedelta(seconds=self.dice.number(40, 1_500))
        self.asked = self.at
        self.seen += len(text)
        message = self.put("user", self.last, message={"role": "user", "content": text})
        shot = {"messageId": message, "trackedFileBackups": {}, "timestamp": stamp(self.at)}
        snapshot = {"messageId": message, "snapshot": shot, "isSnapshotUpdate": False}
        self.line({"type": "file-history-snapshot"} | snapshot)

    def answer(self, step: Step, answers: list[tuple[str, Any, bool]]) -> None:
        """One message of the agent, a line for each block, and what its calls gave."""
        blocks = self.blocks(step)
        written = sum(len(json.dumps(block, ensure_ascii=False)) for block in blocks) // 4
        message, request = f"msg_01{self.dice.text(22)}", f"req_011C{self.dice.text(20)}"
        context = SYSTEM_PROMPT + self.seen // 4
        usage = {
            "input_tokens": self.dice.number(3, 9),
            "cache_creation_input_tokens": context - self.cached,
            "cache_read_input_tokens": self.cached,
            "output_tokens": self.dice.number(1, 8),
            "service_tier": "standard",
        }
        self.cached = context
        self.at += timedelta(seconds=self.dice.number(2, 14))
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
            parent = self.put("assistant", parent, message=said, requestId=request)
            if block["type"] == "tool_use":
                open_calls.append((parent, block["id"], next(waiting)))
            if len(open_calls) > 1 and self.dice.random() < 0.5:
                self.result(*open_calls.pop(0))
        for call in open_calls:
            self.result(*call)
        if not answers:
            took = int((self.at - self.asked) / timedelta(milliseconds=1))
            self.put("system", self.last, subtype="turn_duration", durationMs=took, isMeta=False)

    def blocks(self, step: Step) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        if step.thinking:
            made_up = b64encode(f"made up for a sample: {self.dice.text(160)}".encode()).decode()
            found.append({"type": "thinking", "thinking": step.thinking, "signature": made_up})
        if step.text:
            found.append({"type": "text", "text": step.text})
        for call in step.calls:
            use = {"type": "tool_use", "id": f"toolu_01{self.dice.text(22)}"}
            found.append(use | {"name": call.tool, "input": call.input})
        self.seen += len(step.thinking) + len(step.text)
        self.seen += sum(len(json.dumps(call.input, ensure_ascii=False)) for call in step.calls)
        return found

    def result(self, caller: str, call_id: str, answer: tuple[str, Any, bool]) -> None:
        text, detail, is_error = answer
        self.seen += len(text)
        parent = caller
        if "test session starts" in text[:100]:
            self.at += timedelta(seconds=2)
            data = {"type": "bash_progress", "output": "", "elapsedTimeSeconds": 2}
            more = {"toolUseID": "bash-progress-0", "parentToolUseID": call_id}
            parent = self.put("progress", parent, data=data, **more)
        block: dict[str, Any] = {"tool_use_id": call_id, "type": "tool_result", "content": text}
        message = {"role": "user", "content": [block | ({"is_error": True} if is_error else {})]}
        more = {"toolUseResult": detail, "sourceToolAssistantUUID": caller}
        self.put("user", parent, message=message, **more)
