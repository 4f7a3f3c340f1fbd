"""The steps of one entry of a source: what it says, and how it ended."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ..json_lines import NestedTooDeeplyError, SourceLine
from ..steps import EntryEnd, ImportStep, SkippedEntry, SourceProblem, UnknownEntry
from .fields import MalformedError


def digest_text(text: str) -> str:
    """A short name for a text: where the source has no ids, or says another thing under one."""
    return blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def make_line_problem(line: SourceLine, reason: str) -> SourceProblem:
    """A line that cannot be read, to be kept as it stands."""
    return SourceProblem(line.number, reason, f"{line.digest}:{line.number}", line.text or None)


@dataclass(slots=True)
class EntrySteps:
    """The steps of entry `number`; `end` is how far the source was read."""

    number: int
    end: int
    steps: list[ImportStep] = field(default_factory=list)
    outcome: str = "imported"

    def add(self, *steps: ImportStep) -> None:
        """The entry says this."""
        self.steps += steps

    def skip(self, kind: str, reason: str) -> None:
        """The entry is known and says nothing."""
        self.outcome = "skipped"
        self.steps.append(SkippedEntry(kind, reason))

    def add_unknown(self, kind: str, raw: str, source_id: str | None = None) -> None:
        """The entry, or a piece of it, is of no known type."""
        if self.outcome != "error":
            self.outcome = "unknown"
        key = f"unknown:{source_id or self.number}:{digest_text(raw)}"
        self.steps.append(UnknownEntry(key, kind, raw, self.number, source_id))

    def refuse(self, line: SourceLine, reason: str) -> None:
        """The line cannot be read."""
        self.outcome = "error"
        self.steps.append(make_line_problem(line, reason))

    def add_problem(self, reason: str, raw: str | None = None) -> None:
        """The entry, or a piece of it, cannot be read."""
        self.outcome = "error"
        key = f"refused:{self.number}:{digest_text(raw)}" if raw else None
        self.steps.append(SourceProblem(self.number, reason, key, raw))

    def finish(self) -> Iterable[ImportStep]:
        """All steps of the entry; its end is the last."""
        return [*self.steps, EntryEnd(self.outcome, self.end)]


def read_entry_steps(
    line: SourceLine, number: int, read: Callable[..., None], item: Any, *more: Any
) -> Iterable[ImportStep]:
    """The steps of an entry of a document, read with `read`: whatever is wrong with it is said."""
    entry = EntrySteps(number, line.end)
    try:
        read(entry, item, *more)
    except (MalformedError, NestedTooDeeplyError) as error:
        entry.add_problem(str(error), _raw_text(line, item))
    return entry.finish()


def _raw_text(line: SourceLine, item: Any) -> str | None:
    try:
        return line.to_json(item)
    except NestedTooDeeplyError:
        return None
