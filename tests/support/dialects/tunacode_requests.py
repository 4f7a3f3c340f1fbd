"""TunaCode's controller: what becomes of a request to compact, and how it is named."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cutbank.domain.counting.estimators import TUNACODE_ESTIMATOR
from cutbank.domain.item import Item
from cutbank.domain.messages import iter_message_spans_back
from cutbank.domain.policies.retention_window import (
    FORCED_TRIGGERS,
    RetentionWindow,
)
from cutbank.domain.summaries.templates import TunacodeTemplate
from cutbank.domain.window import Window

from .tunacode import CompactionRecord


class Status(StrEnum):
    """How a request ended."""

    COMPACTED = "compacted"
    SKIPPED = "skipped"
    FAILED = "failed"


class Reason(StrEnum):
    """Why it ended so."""

    COMPACTED = "compacted"
    ALREADY = "already_compacted_this_request"
    NOT_ALLOWED = "threshold_compaction_not_allowed"
    AUTO_OFF = "auto_compaction_disabled"
    BELOW = "below_threshold"
    NO_BOUNDARY = "no_valid_boundary"
    UNSUPPORTED = "unsupported_provider"
    NO_KEY = "missing_api_key"
    FAILED = "summarization_failed"


class CannotSummariseError(Exception):
    """Summaries cannot be had here at all: skipped, and no failure."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


Writes = Callable[[str, str | None], str]
"""Writes a summary of a conversation in text, and of the summary that stood before it."""


@dataclass(frozen=True)
class Outcome:
    """What became of one request."""

    status: Status
    reason: Reason
    kept: tuple[Item, ...]
    """What is sent from here on."""
    gone: tuple[Item, ...]
    record: CompactionRecord | None
    """What the session keeps from here on."""
    was_tried: bool
    """Whether the user's request had its compaction by now, whatever came of it."""

    @property
    def splits_turn(self) -> bool:
        """Whether what is kept begins inside a turn."""
        return bool(self.gone and self.kept) and self.gone[-1].turn == self.kept[0].turn


@dataclass(frozen=True)
class Controller:
    """One session's: the policy, and how it may be carried out."""

    policy: RetentionWindow
    writes: Writes
    auto: bool = True
    """Whether it compacts without being forced to."""

    def checked(
        self,
        window: Window,
        record: CompactionRecord | None,
        *,
        was_tried: bool = False,
        may_by_threshold: bool = True,
        now: str = "",
    ) -> Outcome:
        """Compact, if that is called for; the window's trigger says whether it is forced.

        Skips and failures count as tries as well: only one is made for each request of a user.
        """
        items = tuple(window.open_to_cut)

        def ended(status: Status, reason: Reason, *, was_tried: bool = True) -> Outcome:
            return Outcome(status, reason, items, (), record, was_tried)

        skip = self._skip(window, was_tried=was_tried, may_by_threshold=may_by_threshold)
        if skip is not None:
            return ended(Status.SKIPPED, skip, was_tried=was_tried)
        gone = items[: self.policy.find_cut(window)]
        if not gone:
            return ended(Status.SKIPPED, Reason.NO_BOUNDARY)
        try:
            text = self._written(gone, record)
        except CannotSummariseError as error:
            return ended(Status.SKIPPED, error.reason)
        except Exception:  # noqa: BLE001 - whatever a writer raises, the history stays as it is
            return ended(Status.FAILED, Reason.FAILED)
        kept = items[len(gone) :]
        written = self._record(text, gone, kept, record, now)
        return Outcome(Status.COMPACTED, Reason.COMPACTED, kept, gone, written, was_tried=True)

    def _skip(self, window: Window, *, was_tried: bool, may_by_threshold: bool) -> Reason | None:
        if window.trigger in FORCED_TRIGGERS:
            return None
        if was_tried:
            return Reason.ALREADY
        if not may_by_threshold:
            return Reason.NOT_ALLOWED
        if not self.auto:
            return Reason.AUTO_OFF
        return None if self.policy.fires(window) else Reason.BELOW

    def _written(self, gone: Sequence[Item], record: CompactionRecord | None) -> str:
        said = TunacodeTemplate().render_conversation(gone)
        if not said.strip():
            raise ValueError("there is nothing to sum up")
        previous = record.summary.strip() if record else ""
        text = self.writes(said, previous or None).strip()
        if not text:
            raise ValueError("the summary is empty")
        return text

    def _record(
        self,
        text: str,
        gone: tuple[Item, ...],
        kept: tuple[Item, ...],
        before: CompactionRecord | None,
        now: str,
    ) -> CompactionRecord:
        return CompactionRecord(
            summary=text,
            compacted_message_count=sum(1 for _ in iter_message_spans_back(gone)),
            tokens_before=self._tokens((*gone, *kept)),
            tokens_after=self._tokens(kept) + TUNACODE_ESTIMATOR.count_text(text),
            compaction_count=before.compaction_count + 1 if before else 1,
            previous_summary=before.summary if before else None,
            last_compacted_at=now,
        )

    def _tokens(self, items: tuple[Item, ...]) -> int:
        return sum(
            self.policy.count_tokens(items[start:end])
            for start, end in iter_message_spans_back(items)
        )
