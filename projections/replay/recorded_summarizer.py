"""Writes a replay's summaries from the recorded ones."""

from collections.abc import Iterable
from dataclasses import dataclass

from ...domain.compaction_events import Summary
from ...domain.errors import SummarizerFailedError
from ...domain.event import Event
from ...domain.ranges import Ranges
from ...domain.summaries.summarizer import Draft, Material


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
        raise SummarizerFailedError("no summary on record stands for this and nothing else")
