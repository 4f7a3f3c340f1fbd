"""Collects the steps of one source entry, and its outcome."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ..json_lines import NestedTooDeeplyError, SourceLine
from ..steps import EntryEnd, ImportStep, SkippedEntry, SourceProblem, UnknownEntry
from .fields import MalformedError


def digest_text(text: str) -> str:
    """Return a short name for a text, for sources without ids or with repeated ones."""
    return blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def make_line_problem(line: SourceLine, reason: str) -> SourceProblem:
    """Return the problem of an unreadable line, which is kept unchanged."""
    return SourceProblem(line.number, reason, f"{line.digest}:{line.number}", line.text or None)


@dataclass(slots=True)
class EntrySteps:
    """The steps of entry `number`; `end` is the offset in the source after it."""

    number: int
    end: int
    steps: list[ImportStep] = field(default_factory=list)
    outcome: str = "imported"

    def add(self, *steps: ImportStep) -> None:
        self.steps += steps

    def skip(self, kind: str, reason: str) -> None:
        """Record that the entry is known and has no content."""
        self.outcome = "skipped"
        self.steps.append(SkippedEntry(kind, reason))

    def add_unknown(self, kind: str, raw: str, source_id: str | None = None) -> None:
        """Record that the entry, or a piece of it, has an unknown type."""
        if self.outcome != "error":
            self.outcome = "unknown"
        key = f"unknown:{source_id or self.number}:{digest_text(raw)}"
        self.steps.append(UnknownEntry(key, kind, raw, self.number, source_id))

    def refuse(self, line: SourceLine, reason: str) -> None:
        """Record that the line cannot be read."""
        self.outcome = "error"
        self.steps.append(make_line_problem(line, reason))

    def add_problem(self, reason: str, raw: str | None = None) -> None:
        """Record that the entry, or a piece of it, cannot be read."""
        self.outcome = "error"
        key = f"refused:{self.number}:{digest_text(raw)}" if raw else None
        self.steps.append(SourceProblem(self.number, reason, key, raw))

    def finish(self) -> Iterable[ImportStep]:
        """Return all steps of the entry, including its end."""
        return [*self.steps, EntryEnd(self.outcome, self.end)]


def read_entry_steps(
    line: SourceLine, number: int, read: Callable[..., None], item: Any, *more: Any
) -> Iterable[ImportStep]:
    """Return the steps of a document's entry, read with `read`; report all problems."""
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
