"""What long verbs answer with: an import's report for each file, a verification's verdict."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class FileReport:
    """What became of one file; the same shape in Python and in `import --json`."""

    path: str
    format: str | None = None
    """None where no format recognises the file."""
    bytes: int = 0
    """How large it is."""
    passed: str | None = None
    """Why it was not read: `unchanged` since it was imported, or `not a transcript`."""
    sessions: list[str] = field(default_factory=list)
    entries: int = 0
    """Entries in the file: imported + skipped + unknown + those with errors."""
    imported: int = 0
    """Entries whose content the sessions hold, whether stored now or before."""
    ended: dict[str, int] = field(default_factory=dict)
    """How each entry ended, and how many did: `imported`, `skipped`, `unknown` or `error`."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Known entries that say nothing a session holds: reason to count."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Entries of unknown types, kept raw as notes: type to count."""
    unknown_at: dict[str, str] = field(default_factory=dict)
    """Where the first of each unknown type is: type to `file:line`."""
    tool_calls: int = 0
    tool_results: int = 0
    compactions: int = 0
    abandoned: int = 0
    """Calls that the source went on without: closed, since nobody will answer them."""
    added: int = 0
    """Blocks that were not there before."""
    complete: bool = False
    """Whether the file was read to its end."""
    errors: list[str] = field(default_factory=list)
    """One line each: where, what is wrong, what was done."""
    redacted: dict[str, list[str]] = field(default_factory=dict)
    """Secrets that were replaced before anything was stored: kind to where each was."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was written; the same shape in Python and in `export --json`."""

    session: str
    format: str
    path: str | None
    """None where it went to an open file."""
    bytes: int
    of: str
    """`log` or `view`; of an archive, `archive`."""
    lost: dict[str, int] = field(default_factory=dict)
    """What the format cannot hold, in words, and how much of it there was."""
    sessions: list[str] = field(default_factory=list)
    """The sessions that an archive holds whole; empty of other formats."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Something stored that breaks an invariant."""

    session: str
    rule: str
    """`log`, `coverage`, `pairs` or `fingerprint`."""
    what: str
    lineage: str | None = None
    position: int | None = None


@dataclass(slots=True)
class VerificationReport:
    """What a verification found."""

    sessions: int = 0
    positions: int = 0
    boundaries: int = 0
    calls: int = 0
    """Model calls whose fingerprint was recomputed."""
    violations: list[Violation] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        return not self.violations
