"""Writes a replay's summaries by the rules for live ones, but without a clock."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import cast

from ...domain.compaction_events import Summary
from ...domain.errors import RejectedSummaryError, SummarizerFailedError
from ...domain.event import Event
from ...domain.ranges import Ranges
from ...domain.summaries.extractive import ExtractiveSummarizer
from ...domain.summaries.gate import check_draft
from ...domain.summaries.simple_summarizers import ListingSummarizer, NoticeSummarizer
from ...domain.summaries.summarizer import Draft, Material, Summarizer
from ...domain.window import OnFailure
from ..planned_compaction import PlannedCompaction, reuse_summary

UserTextReader = Callable[[Draft, Material], Iterable[str]]
"""Returns the users' texts that a draft may quote."""


@dataclass(frozen=True, slots=True)
class WrittenDraft:
    """A draft, its summarizer, and the drafts rejected before it."""

    draft: Draft
    summarizer: str
    refused_drafts: tuple[str, ...] = ()


class ReplayUnwrittenError(SummarizerFailedError):
    """No summary could be written, and the policy allows no fallback."""


@dataclass(frozen=True)
class ReplayWriters:
    """The summarizers to try, in order, before the usual fallback.

    A draft has to pass the same gate as a live one. None of them may wait: one that uses a model
    takes its answer from a cache.
    """

    summarizers: tuple[Summarizer, ...] = ()
    budget: int | None = None
    """The most tokens of each summary, regardless of the policy; None leaves it to the policy."""
    extractive: ExtractiveSummarizer = field(default_factory=ExtractiveSummarizer)
    """The usual fallback, which remembers what it read in the session's blocks."""

    def write_summary(self, planned: PlannedCompaction, user_texts: UserTextReader) -> WrittenDraft:
        """Return the first accepted draft; raise ReplayUnwrittenError without one or a fallback."""
        material = planned.material
        if not material.removed_items:
            return WrittenDraft(*reuse_summary(planned))
        if not planned.plan.summary_tokens:
            notice = NoticeSummarizer()
            return WrittenDraft(notice.summarize(material), notice.name)
        if self.budget is not None:
            material = replace(material, budget=self.budget, turn_budget=0)
        refused: list[str] = []
        on_failure = planned.plan.on_failure
        for summarizer in self._list_summarizers(on_failure):
            try:
                # A replay uses only synchronous summarizers.
                draft = cast(Draft, summarizer.summarize(material))
                check_draft(draft, material, user_texts=user_texts(draft, material))
            except (RejectedSummaryError, SummarizerFailedError) as error:
                refused.append(f"{summarizer.name}: {error}")
            else:
                return WrittenDraft(draft, summarizer.name, tuple(refused))
        if refused and on_failure is OnFailure.UNCHANGED:
            raise ReplayUnwrittenError("; ".join(refused))
        last = NoticeSummarizer() if on_failure is OnFailure.NOTICE else ListingSummarizer()
        return WrittenDraft(last.summarize(material), last.name, tuple(refused))

    def _list_summarizers(self, on_failure: OnFailure) -> tuple[Summarizer, ...]:
        own = self.extractive
        if not self.summarizers:
            return (own,)
        if on_failure is OnFailure.EXTRACTIVE and all(
            one.name != own.name for one in self.summarizers
        ):
            return (*self.summarizers, own)
        return self.summarizers


@dataclass(frozen=True)
class RecordedSummarizer:
    """Takes the newest recorded summary that covers nothing beyond the new one.

    It also has to cover some of the blocks that leave now, because the previous summary says
    nothing about those. Another policy's boundaries may match no recorded summary; then another
    summarizer writes it.
    """

    summaries: tuple[Summary, ...]
    name: str = "recorded"

    @classmethod
    def from_decisions(cls, decisions: Iterable[Event]) -> "RecordedSummarizer":
        """Return a summarizer with the summaries among a lineage's events."""
        return cls(tuple(event for event in decisions if isinstance(event, Summary)))

    def summarize(self, material: Material) -> Draft:
        leaving = Ranges.of(item.position for item in material.removed_items)
        for summary in reversed(self.summaries):
            if summary.covers & leaving and not summary.covers - material.covers:
                return Draft(
                    text=summary.text,
                    sections=summary.sections,
                    cites=summary.cites & material.covers,
                    model=summary.model,
                )
        raise SummarizerFailedError("no recorded summary covers exactly these blocks")
