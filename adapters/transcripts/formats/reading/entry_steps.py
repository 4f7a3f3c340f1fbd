"""The steps of one entry of a source: what it says, and how it ended."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ..json_lines import Line, NestedTooDeeplyError
from ..steps import EntryRead, Problem, Skipped, Step, Unknown
from .fields import MalformedError


def digest_of(text: str) -> str:
    """A short name for a text: where the source has no ids, or says another thing under one."""
    return blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def refused(line: Line, reason: str) -> Problem:
    """A line that cannot be read, to be kept as it stands."""
    return Problem(line.number, reason, f"{line.digest}:{line.number}", line.text or None)


@dataclass(slots=True)
class EntrySteps:
    """The steps of entry `number`; `end` is how far the source was read."""

    number: int
    end: int
    steps: list[Step] = field(default_factory=list)
    outcome: str = "imported"

    def say(self, *steps: Step) -> None:
        """The entry says this."""
        self.steps += steps

    def skip(self, kind: str, reason: str) -> None:
        """The entry is known and says nothing."""
        self.outcome = "skipped"
        self.steps.append(Skipped(kind, reason))

    def unknown(self, kind: str, raw: str, source_id: str | None = None) -> None:
        """The entry, or a piece of it, is of no known type."""
        if self.outcome != "error":
            self.outcome = "unknown"
        key = f"unknown:{source_id or self.number}:{digest_of(raw)}"
        self.steps.append(Unknown(key, kind, raw, self.number, source_id))

    def refuse(self, line: Line, reason: str) -> None:
        """The line cannot be read."""
        self.outcome = "error"
        self.steps.append(refused(line, reason))

    def problem(self, reason: str, raw: str | None = None) -> None:
        """The entry, or a piece of it, cannot be read."""
        self.outcome = "error"
        key = f"refused:{self.number}:{digest_of(raw)}" if raw else None
        self.steps.append(Problem(self.number, reason, key, raw))

    def ended(self) -> Iterable[Step]:
        """All steps of the entry; its end is the last."""
        return [*self.steps, EntryRead(self.outcome, self.end)]


def entry_steps(
    line: Line, number: int, read: Callable[..., None], item: Any, *more: Any
) -> Iterable[Step]:
    """The steps of an entry of a document, read with `read`: whatever is wrong with it is said."""
    entry = EntrySteps(number, line.end)
    try:
        read(entry, item, *more)
    except (MalformedError, NestedTooDeeplyError) as error:
        entry.problem(str(error), _raw(line, item))
    return entry.ended()


def _raw(line: Line, item: Any) -> str | None:
    try:
        return line.json(item)
    except NestedTooDeeplyError:
        return None
