"""Writes a replay's summaries by the rules for live ones, but without a clock."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import cast

from ...domain.errors import RejectedSummaryError, SummarizerFailedError
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
    """The summarizer to try before the usual fallback.

    A draft has to pass the same gate as a live one. The summarizer may not wait: one that uses a
    model takes its answer from a cache.
    """

    summarizer: Summarizer | None = None
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
        on_failure = planned.plan.on_failure
        summarizers: list[Summarizer] = [self.summarizer] if self.summarizer else []
        if not summarizers or on_failure is OnFailure.EXTRACTIVE:
            summarizers.append(self.extractive)
        refused: list[str] = []
        for summarizer in summarizers:
            try:
                # A replay uses only synchronous summarizers.
                draft = cast(Draft, summarizer.summarize(material))
                check_draft(draft, material, user_texts=user_texts(draft, material))
            except (RejectedSummaryError, SummarizerFailedError) as error:
                refused.append(f"{summarizer.name}: {error}")
            else:
                return WrittenDraft(draft, summarizer.name, tuple(refused))
        if on_failure is OnFailure.UNCHANGED:
            raise ReplayUnwrittenError("; ".join(refused))
        last = NoticeSummarizer() if on_failure is OnFailure.NOTICE else ListingSummarizer()
        return WrittenDraft(last.summarize(material), last.name, tuple(refused))
