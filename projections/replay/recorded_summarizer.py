"""Writes what was written on record: the summary of a boundary that was really drawn."""

from collections.abc import Iterable
from dataclasses import dataclass

from ...domain.compaction_events import Summary
from ...domain.errors import SummarizerFailedError
from ...domain.event import Event
from ...domain.ranges import Ranges
from ...domain.summaries.summarizer import Draft, Material


@dataclass(frozen=True)
class RecordedSummarizer:
    """Takes the newest recorded summary that stands for nothing but what the new one has to.

    It has to stand for some of what leaves now: the text that stood there before says nothing of
    that. Boundaries of another policy cut elsewhere, so that none may fit: then others write.
    """

    summaries: tuple[Summary, ...]
    name: str = "recorded"

    @classmethod
    def from_decisions(cls, decisions: Iterable[Event]) -> "RecordedSummarizer":
        """Those of a lineage, of all its events."""
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
