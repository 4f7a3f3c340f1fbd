"""Every rule that can be broken, by name; the message says what, where and what to do."""


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


class InvalidPositionError(CutbankError):
    """A position that names no block of the session, or not one that the verb accepts."""


class NothingToCompactError(CutbankError):
    """A compaction would not make the view smaller; says what holds the floor up."""


class RejectedSummaryError(CutbankError):
    """A draft failed the gate; says by which rule, and why."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(f"{rule}: {reason}")
        self.rule = rule
        self.reason = reason


class InvalidSettingError(CutbankError):
    """A policy, setting or option that does not exist or does not fit."""


class StorageError(CutbankError):
    """The database cannot be opened, read or written."""


class ImportFileError(CutbankError):
    """A file cannot be imported; says where in it and why."""
