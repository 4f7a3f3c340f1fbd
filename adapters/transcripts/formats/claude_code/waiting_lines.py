"""Holds back lines that Claude Code wrote before the line that they follow.

With parallel tools, a result may be written before the line of its call. The result and its
descendants wait for that line, at most until the model or the user continues.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..json_lines import SourceLine


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

    def _hold(
        self, line: SourceLine, item: dict[str, Any], answered: list[str], group: int
    ) -> None:
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


def _call_ids(item: dict[str, Any], kind: str, part: str, field: str) -> Iterator[str]:
    """Yield the ids of tool calls that an entry of this kind makes or answers."""
    message = item.get("message") if item.get("type") == kind else None
    content = message.get("content") if isinstance(message, dict) else None
    for one in content if isinstance(content, list) else ():
        if isinstance(one, dict) and one.get("type") == part and isinstance(one.get(field), str):
            yield one[field]
