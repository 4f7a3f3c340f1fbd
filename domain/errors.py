"""Every rule that can be broken, by name; the message says what, where and what to do."""

from datetime import datetime


class CutbankError(Exception):
    """Base of all errors that cutbank raises on purpose."""


class NotFoundError(CutbankError):
    """A session, handle, boundary, lineage or policy by that name does not exist."""


class ConflictError(CutbankError):
    """The stream moved on since the caller looked: `expect` is stale."""


class StalePlanError(ConflictError):
    """Another boundary was decided since this plan was made."""


class SessionClosedError(CutbankError):
    """Nothing can be appended to a closed session."""


class OrphanToolResultError(CutbankError):
    """A tool result answers no open call."""


class DuplicateToolCallError(CutbankError):
    """A call with this id is still open."""


class UnknownFieldError(CutbankError, TypeError):
    """A block, a usage or another record was given a field that it does not have."""


class InvalidResponseError(CutbankError):
    """A value is not a model's response that can be appended; says what was expected."""


class InvalidPositionError(CutbankError):
    """A position that names no block of the session, or not one that the verb accepts."""


class NothingToCompactError(CutbankError):
    """A compaction would not make the view smaller; says what holds the floor up."""


class PolicyFailedError(CutbankError):
    """A policy raised, or answered what is no plan; says where in the session, and what."""


class BacktestError(CutbankError):
    """A backtest cannot be run as it was asked for; says what is missing or in the way."""


class CacheFileError(CutbankError):
    """A file that keeps what was worked out before cannot be used; deleted, it loses only time."""


class RejectedSummaryError(CutbankError):
    """A draft failed the gate; says by which rule, and why."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(f"{rule}: {reason}")
        self.rule = rule
        self.reason = reason


class SummarizerFailedError(CutbankError):
    """A summariser could not write its draft; the message never holds a key or what was sent."""

    def __init__(
        self, message: str, *, is_transient: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.is_transient = is_transient
        """Whether the same may succeed a little later: a rate limit, a lost connection."""
        self.retry_after_s = retry_after_s
        """How long the provider asked to wait."""


class MissingSummariesError(CutbankError):
    """A model would have to be asked, and nobody allowed that; says how often, and the price."""


class CompactionVetoedError(CutbankError):
    """A hook forbade the compaction; says which, and why."""


class CompactionCancelledError(CutbankError):
    """Somebody stopped the compaction while its summary was written; the view is as it was."""


class ContextOverflowError(CutbankError):
    """A request stays too long for its model, whatever was compacted; says what can be done."""

    def __init__(
        self,
        message: str,
        *,
        model: str | None = None,
        tokens: int | None = None,
        limit: int | None = None,
        largest: tuple[int, ...] = (),
        hints: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.model = model
        self.tokens = tokens
        """Tokens of the view, as reported, else as estimated."""
        self.limit = limit
        """Tokens that the model holds, where anybody said so."""
        self.largest = largest
        """Positions of the largest blocks of the view, which hold the floor up."""
        self.hints = hints
        """What to do, one sentence each."""

    @property
    def estimated_tokens(self) -> int | None:
        """The tokens, as the reference documents call them."""
        return self.tokens

    @property
    def max_tokens(self) -> int | None:
        """The limit, as the reference documents call it."""
        return self.limit


class LeaseHeldError(CutbankError):
    """Somebody else is compacting the session now; says who, and until when."""

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message)
        self.until = until


class LeaseLostError(CutbankError):
    """A worker's lease ran out or was overruled before it was done: its work is not used."""


class InvalidSettingError(CutbankError):
    """A policy, setting or option that does not exist or does not fit; one line for each."""

    def __init__(self, *mistakes: str) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class StorageError(CutbankError):
    """The database cannot be opened, read or written."""


class ImportFileError(CutbankError):
    """A file cannot be imported; says where in it and why."""


class ExportError(CutbankError):
    """What was asked for cannot be written; says why, and what to do."""
