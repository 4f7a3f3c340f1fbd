"""Names every rule that can be broken; each message says what failed, where, and what to do."""

from datetime import datetime


class CutbankError(Exception):
    """Base of all errors that cutbank raises on purpose."""


class NegativeAnswerError(CutbankError):
    """The request was right, and the answer is no; all other errors are wrong requests."""


class NotFoundError(CutbankError):
    """A session, handle, boundary, lineage or policy with that name does not exist."""


class ConflictError(NegativeAnswerError):
    """The stream has grown since the caller read it: `expect` is stale."""


class StalePlanError(ConflictError):
    """Another boundary was recorded since this plan was made."""


class SessionClosedError(CutbankError):
    """A closed session accepts no more blocks."""


class OrphanToolResultError(CutbankError):
    """A tool result answers no open call."""


class DuplicateToolCallError(CutbankError):
    """A call with this id is still open."""


class UnknownFieldError(CutbankError, TypeError):
    """A block, a usage or another record got a field that it does not have."""


class InvalidResponseError(CutbankError):
    """A value is not a model response that can be appended; the message says what was expected."""


class InvalidPositionError(CutbankError):
    """A position names no block of the session, or not one that the call accepts."""


class NothingToCompactError(NegativeAnswerError):
    """A compaction would not make the view smaller; the message names what cannot leave."""


class PolicyFailedError(CutbankError):
    """A policy raised or returned something other than a plan; the message says where and what."""


class BacktestError(CutbankError):
    """A backtest cannot run as requested; the message names the obstacle."""


class CacheFileError(CutbankError):
    """A cache file cannot be used; deleting it loses only time."""


class RejectedSummaryError(NegativeAnswerError):
    """A draft failed the gate; the message names the rule and the reason."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(f"{rule}: {reason}")
        self.rule = rule
        self.reason = reason


class SummarizerFailedError(CutbankError):
    """A summarizer could not write its draft; the message never holds a key or the prompt."""

    def __init__(
        self, message: str, *, is_transient: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.is_transient = is_transient
        """Whether a retry may succeed, as after a rate limit or a lost connection."""
        self.retry_after_s = retry_after_s


class MissingSummariesError(NegativeAnswerError):
    """The run needs a model's summary and may not ask; the message says how to allow it."""


class CompactionVetoedError(NegativeAnswerError):
    """A hook forbade the compaction; the message says which and why."""


class CompactionCancelledError(NegativeAnswerError):
    """The compaction was stopped while its summary was written; the view is unchanged."""


class ContextOverflowError(NegativeAnswerError):
    """A request stays too long for its model after all compaction; the message says what to do."""

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
        """Tokens of the view, reported or else estimated."""
        self.limit = limit
        """Tokens that the model accepts, if known."""
        self.largest = largest
        """Positions of the largest blocks of the view."""
        self.hints = hints
        """What to do, one sentence each."""

    @property
    def estimated_tokens(self) -> int | None:
        """The tokens, under the name that the reference documents use."""
        return self.tokens

    @property
    def max_tokens(self) -> int | None:
        """The limit, under the name that the reference documents use."""
        return self.limit


class LeaseHeldError(CutbankError):
    """Another worker is compacting the session; the message says which, and until when."""

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message)
        self.until = until


class LeaseLostError(CutbankError):
    """A worker's lease expired or was overruled before it finished; its work is discarded."""


class InvalidSettingError(CutbankError):
    """A policy, setting or option does not exist or has a bad value; one line for each."""

    def __init__(self, *mistakes: str) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class StorageError(CutbankError):
    """The database cannot be opened, read or written."""


class ImportFileError(CutbankError):
    """A file cannot be imported; the message says where and why."""


class ExportError(CutbankError):
    """An export cannot be written; the message says why, and what to do."""


def describe_error(error: BaseException) -> str:
    """Return the class and the message of any error, in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
