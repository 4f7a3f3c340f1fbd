"""Collects the steps of a line, and holds back lines that were written before their call."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..fields import JsonDict
from ..json_lines import SourceLine
from ..steps import Append, ImportStep, RawEntry, SkippedEntry, SourceProblem, UnknownEntry
from .conversations import ClaudeConversation


@dataclass(slots=True)
class LineReport:
    """The steps of a line, each under its session, and the outcome of its entry."""

    home: ClaudeConversation
    """The conversation for what belongs to no other."""
    current: ClaudeConversation | None = None
    steps: list[ImportStep] = field(default_factory=list)
    outcome: str = "imported"
    owner: ClaudeConversation = field(init=False)
    """The conversation of the line's entry."""
    id: str | None = None
    previous_id: str | None = None
    """As in the origin of a block."""
    key_counts: Counter[str] = field(default_factory=Counter)

    def begin_line(self) -> None:
        self.steps, self.outcome = [], "imported"
        self.owner, self.id, self.previous_id = self.home, None, None

    def add_steps(self, conversation: ClaudeConversation, steps: Iterable[ImportStep]) -> None:
        for step in steps:
            self._enter_conversation(conversation)
            self.steps.append(step)

    def report_title(self, conversation: ClaudeConversation) -> None:
        self.current = None
        self._enter_conversation(conversation)

    def skip(self, kind: str, reason: str) -> None:
        """Record that the entry is known and has no content."""
        self.outcome = "skipped"
        self.steps.append(SkippedEntry(kind, reason))

    def keep(self, line: SourceLine, kind: str) -> None:
        """Keep a known entry unchanged; no model was sent it."""
        key = f"{self.id}:entry" if self.id else self._name_line(line)
        entry = RawEntry(key, kind, line.text, self.id, line.number, self.previous_id)
        self.add_steps(self.owner, [entry])

    def add_unknown(self, line: SourceLine, kind: str, part: tuple[int, Any] | None = None) -> None:
        """Record an entry of unknown type, or the item at an index. The rest of the entry holds an
        item too.
        """
        if self.outcome != "error":
            self.outcome = "unknown"
        if part is None:
            key, of = self._name_line(line), self
            step = UnknownEntry(key, kind, line.text, line.number, of.id, of.previous_id)
        else:
            step = UnknownEntry(f"{line.digest}:{part[0]}", kind, line.to_json(part[1]))
        self.add_steps(self.owner, [step])

    def add_problem(
        self,
        line: SourceLine,
        reason: str,
        part: tuple[int, Any] | None = None,
        append: Append | None = None,
    ) -> None:
        """Record that nothing of the entry, or not the item at an index, can be read."""
        self.outcome = "error"
        if part is None:
            key, raw = self._name_line(line), line.text
            step = SourceProblem(line.number, reason, key, raw, self.previous_id, append=append)
        else:
            key, raw = f"{line.digest}:{part[0]}", line.to_json(part[1])
            step = SourceProblem(line.number, reason, key, raw, is_part=True)
        self.add_steps(self.owner, [step])

    def add_remark(self, line: SourceLine, reason: str) -> None:
        """Record that something is wrong with an entry that was read."""
        self.outcome = "error"
        self.steps.append(SourceProblem(line.number, reason))

    def _name_line(self, line: SourceLine) -> str:
        """Return a unique key for a line without an id; the same line may occur more than once."""
        self.key_counts[line.digest] += 1
        times = self.key_counts[line.digest]
        return line.digest if times == 1 else f"{line.digest}:{times}"

    def _enter_conversation(self, conversation: ClaudeConversation) -> None:
        if self.current is not conversation:
            self.current = conversation
            self.steps.append(conversation.begin)


@dataclass(slots=True)
class WaitingLines:
    """The waiting lines, in groups: a result without its call, and its descendants."""

    known_calls: set[str] = field(default_factory=set)
    groups: dict[int, list[SourceLine]] = field(default_factory=dict)
    """Groups by the number of their first line."""
    group_of: dict[str, int] = field(default_factory=dict)
    """The group of each waiting entry, by id."""
    wanted_calls: dict[str, set[int]] = field(default_factory=dict)

    def take(self, line: SourceLine) -> Iterator[SourceLine]:
        """Yield the lines that can be read now, in order; none if this one has to wait."""
        item = line.value if isinstance(line.value, dict) else {}
        answered = list(_call_ids(item, "user", "tool_result", "tool_use_id"))
        above = item.get("parentUuid")
        group = self.group_of.get(above) if isinstance(above, str) else None
        if group is not None and not answered and item.get("type") in ("user", "assistant"):
            yield from self._release(group)
        elif group is not None or (answered and self.known_calls.isdisjoint(answered)):
            self._hold(line, item, answered, line.number if group is None else group)
            return
        yield line
        for call in _call_ids(item, "assistant", "tool_use", "id"):
            self.known_calls.add(call)
            for waiting in sorted(self.wanted_calls.pop(call, ())):
                for held in self._release(waiting):
                    yield from self.take(held)

    def release(self) -> Iterator[SourceLine]:
        """Yield all lines that still wait."""
        for group in list(self.groups):
            yield from self._release(group)

    def _hold(self, line: SourceLine, item: JsonDict, answered: list[str], group: int) -> None:
        self.groups.setdefault(group, []).append(line)
        if isinstance(id := item.get("uuid"), str):
            self.group_of[id] = group
        for call in answered:
            self.wanted_calls.setdefault(call, set()).add(group)

    def _release(self, group: int) -> list[SourceLine]:
        lines = self.groups.pop(group, [])
        for line in lines:
            if isinstance(id := line.value.get("uuid"), str):
                self.group_of.pop(id, None)
        return lines


def _call_ids(item: JsonDict, kind: str, part: str, field: str) -> Iterator[str]:
    """Yield the ids of tool calls that an entry of this kind makes or answers."""
    message = item.get("message") if item.get("type") == kind else None
    content = message.get("content") if isinstance(message, dict) else None
    for one in content if isinstance(content, list) else ():
        if isinstance(one, dict) and one.get("type") == part and isinstance(one.get(field), str):
            yield one[field]
