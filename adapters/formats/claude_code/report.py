"""What is reported of a line: its steps, and how the entry ended."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..json_lines import Line
from ..steps import EntryRead, Problem, Skipped, Step, Unknown
from .conversation import Conversation


@dataclass(slots=True)
class Report:
    """The steps of a line, each under the session that it belongs to."""

    home: Conversation
    """Where it is kept what belongs to no conversation."""
    current: Conversation | None = None
    steps: list[Step] = field(default_factory=list)
    outcome: str = "imported"

    def begin(self) -> None:
        """A line begins."""
        self.steps, self.outcome = [], "imported"

    def end(self, line: Line) -> list[Step]:
        """A line ends: all its steps."""
        self.steps.append(EntryRead(self.outcome, line.end))
        return self.steps

    def say(self, conversation: Conversation, steps: Iterable[Step]) -> None:
        """Report steps of a conversation."""
        for step in steps:
            self._enter(conversation)
            self.steps.append(step)

    def rename(self, conversation: Conversation) -> None:
        """Report a conversation's title."""
        self.current = None
        self._enter(conversation)

    def skip(self, kind: str, reason: str) -> None:
        """The entry is known and says nothing."""
        self.outcome = "skipped"
        self.steps.append(Skipped(kind, reason))

    def unknown(self, line: Line, kind: str, raw: str, index: int | None = None) -> None:
        """The entry, or the item of that index, is of no known type."""
        if self.outcome != "error":
            self.outcome = "unknown"
        self._enter(self.current or self.home)
        self.steps.append(Unknown(_key(line, index), kind, raw))

    def problem(
        self, line: Line, reason: str, raw: str | None = None, index: int | None = None
    ) -> None:
        """The entry, or the item of that index, cannot be read. The rest of it is."""
        self.outcome = "error"
        if raw is None:
            self.steps.append(Problem(line.number, reason))
        else:
            self._enter(self.current or self.home)
            self.steps.append(Problem(line.number, reason, _key(line, index), raw))

    def _enter(self, conversation: Conversation) -> None:
        if self.current is not conversation:
            self.current = conversation
            self.steps.append(conversation.begin)


def _key(line: Line, index: int | None) -> str:
    return line.digest if index is None else f"{line.digest}:{index}"
