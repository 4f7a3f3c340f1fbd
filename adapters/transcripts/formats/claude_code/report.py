"""What is reported of a line: its steps, and how the entry ended."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..json_lines import Line
from ..steps import Append, Aside, Problem, Skipped, Step, Unknown
from .conversation import Conversation


@dataclass(slots=True)
class Report:
    """The steps of a line, each under the session that it belongs to."""

    home: Conversation
    """Where it is kept what belongs to no conversation."""
    current: Conversation | None = None
    steps: list[Step] = field(default_factory=list)
    outcome: str = "imported"
    owner: Conversation = field(init=False)
    """The conversation of the line's entry."""
    id: str | None = None
    follows: str | None = None
    """As in the origin of a block."""
    named: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.owner = self.home

    def begin(self) -> None:
        """A line begins."""
        self.steps, self.outcome = [], "imported"
        self.owner, self.id, self.follows = self.home, None, None

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

    def keep(self, line: Line, kind: str) -> None:
        """The entry is known, and kept as it stands: no model was sent it."""
        self._enter(self.owner)
        key = f"{self.id}:entry" if self.id else self.name(line)
        self.steps.append(Aside(key, kind, line.text, self.id, line.number, self.follows))

    def unknown(self, line: Line, kind: str) -> None:
        """The entry is of no known type, or nothing in it is."""
        self._unknown()
        key = self.name(line)
        self.steps.append(Unknown(key, kind, line.text, line.number, self.id, self.follows))

    def unknown_item(self, line: Line, kind: str, raw: str, index: int) -> None:
        """The item of that index is of no known type. The rest of the entry holds it as well."""
        self._unknown()
        self.steps.append(Unknown(f"{line.digest}:{index}", kind, raw))

    def problem(
        self, line: Line, reason: str, raw: str | None = None, append: Append | None = None
    ) -> None:
        """The entry cannot be read, or a part of it. `raw` is the entry, where none of it is."""
        self.outcome = "error"
        if raw is None:
            self.steps.append(Problem(line.number, reason))
        else:
            self._enter(self.owner)
            key = self.name(line)
            problem = Problem(line.number, reason, key, raw, self.follows, append=append)
            self.steps.append(problem)

    def problem_item(self, line: Line, reason: str, raw: str, index: int) -> None:
        """The item of that index cannot be read. The rest of the entry holds it as well."""
        self.outcome = "error"
        self._enter(self.owner)
        key = f"{line.digest}:{index}"
        self.steps.append(Problem(line.number, reason, key, raw, is_part=True))

    def name(self, line: Line) -> str:
        """A key for a line without an id: the same line may stand there more than once."""
        self.named[line.digest] += 1
        times = self.named[line.digest]
        return line.digest if times == 1 else f"{line.digest}:{times}"

    def _unknown(self) -> None:
        if self.outcome != "error":
            self.outcome = "unknown"
        self._enter(self.owner)

    def _enter(self, conversation: Conversation) -> None:
        if self.current is not conversation:
            self.current = conversation
            self.steps.append(conversation.begin)
