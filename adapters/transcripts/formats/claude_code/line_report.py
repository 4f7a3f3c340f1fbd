"""Collects the steps of each line, and the outcome of its entry."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..json_lines import SourceLine
from ..steps import Append, ImportStep, RawEntry, SkippedEntry, SourceProblem, UnknownEntry
from .conversation import ClaudeConversation


@dataclass(slots=True)
class LineReport:
    """The steps of a line, each under its session."""

    home: ClaudeConversation
    """The conversation for what belongs to no other."""
    current: ClaudeConversation | None = None
    steps: list[ImportStep] = field(default_factory=list)
    outcome: str = "imported"
    owning_conversation: ClaudeConversation = field(init=False)
    id: str | None = None
    previous_id: str | None = None
    """As in the origin of a block."""
    key_counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.owning_conversation = self.home

    def begin_line(self) -> None:
        self.steps, self.outcome = [], "imported"
        self.owning_conversation, self.id, self.previous_id = self.home, None, None

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
        self._enter_conversation(self.owning_conversation)
        key = f"{self.id}:entry" if self.id else self.name_line(line)
        self.steps.append(RawEntry(key, kind, line.text, self.id, line.number, self.previous_id))

    def add_unknown(self, line: SourceLine, kind: str) -> None:
        """Record an entry of unknown type, or with only unknown items."""
        self._count_unknown()
        key = self.name_line(line)
        self.steps.append(
            UnknownEntry(key, kind, line.text, line.number, self.id, self.previous_id)
        )

    def add_unknown_item(self, line: SourceLine, kind: str, raw: str, index: int) -> None:
        """Record an item of unknown type. The rest of the entry holds it too."""
        self._count_unknown()
        self.steps.append(UnknownEntry(f"{line.digest}:{index}", kind, raw))

    def add_problem(
        self, line: SourceLine, reason: str, raw: str | None = None, append: Append | None = None
    ) -> None:
        """Record that all or part of the entry cannot be read. `raw` is the entry if nothing was
        read.
        """
        self.outcome = "error"
        if raw is None:
            self.steps.append(SourceProblem(line.number, reason))
        else:
            self._enter_conversation(self.owning_conversation)
            key = self.name_line(line)
            problem = SourceProblem(line.number, reason, key, raw, self.previous_id, append=append)
            self.steps.append(problem)

    def add_problem_item(self, line: SourceLine, reason: str, raw: str, index: int) -> None:
        """Record that an item cannot be read. The rest of the entry holds it too."""
        self.outcome = "error"
        self._enter_conversation(self.owning_conversation)
        key = f"{line.digest}:{index}"
        self.steps.append(SourceProblem(line.number, reason, key, raw, is_part=True))

    def name_line(self, line: SourceLine) -> str:
        """Return a unique key for a line without an id; the same line may occur more than once."""
        self.key_counts[line.digest] += 1
        times = self.key_counts[line.digest]
        return line.digest if times == 1 else f"{line.digest}:{times}"

    def _count_unknown(self) -> None:
        if self.outcome != "error":
            self.outcome = "unknown"
        self._enter_conversation(self.owning_conversation)

    def _enter_conversation(self, conversation: ClaudeConversation) -> None:
        if self.current is not conversation:
            self.current = conversation
            self.steps.append(conversation.begin)
