"""Defines the results of long operations: import, export and verification reports."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class FileReport:
    """The import result of one file; the same fields in Python and in `import --json`."""

    path: str
    format: str | None = None
    """None if the file has no known format."""
    bytes: int = 0
    passed: str | None = None
    """Why it was not read: `unchanged` since it was imported, or `not a transcript`."""
    sessions: list[str] = field(default_factory=list)
    entries: int = 0
    """Entries in the file: imported + skipped + unknown + those with errors."""
    imported: int = 0
    """Entries whose content the sessions hold, whether stored now or before."""
    ended: dict[str, int] = field(default_factory=dict)
    """Entries by outcome: `imported`, `skipped`, `unknown` or `error`."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Known entries without session content: reason to count."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Entries of unknown types, which only the kept source holds: type to count."""
    unknown_at: dict[str, str] = field(default_factory=dict)
    """The first of each unknown type: type to `file:line`."""
    tool_calls: int = 0
    tool_results: int = 0
    compactions: int = 0
    abandoned: int = 0
    """Calls that the source left unanswered, and that were closed."""
    added: int = 0
    """Blocks that were not there before."""
    complete: bool = False
    """Whether the file was read to its end."""
    errors: list[str] = field(default_factory=list)
    """One line each: the place, the problem and the action."""
    redacted: dict[str, list[str]] = field(default_factory=dict)
    """Secrets that were replaced before anything was stored: kind to places."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The export result; the same fields in Python and in `export --json`."""

    session: str
    format: str
    path: str | None
    """None if it was written to an open file."""
    bytes: int
    of: str
    """`log` or `view`; for an archive, `archive`."""
    lost: dict[str, int] = field(default_factory=dict)
    """What the format cannot hold: description to count."""
    sessions: list[str] = field(default_factory=list)
    """The sessions that an archive holds; empty for other formats."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A stored value that breaks an invariant."""

    session: str
    rule: str
    """`log`, `source`, `coverage`, `pairs` or `fingerprint`."""
    what: str
    lineage: str | None = None
    position: int | None = None


@dataclass(slots=True)
class VerificationReport:
    """The result of a verification."""

    sessions: int = 0
    positions: int = 0
    boundaries: int = 0
    calls: int = 0
    """Model calls whose fingerprint was recomputed."""
    violations: list[Violation] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        return not self.violations
