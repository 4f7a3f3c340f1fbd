"""A compaction as the formats of Gemini hold it, which have none: a text in the user's role."""

from .....projections.rendering import summary_message
from ..outgoing import OutgoingCompaction, OutgoingSession


def make_summary_text(outgoing: OutgoingSession, compacted: OutgoingCompaction) -> str | None:
    """The summary in its mark, by which it is known again; None where there is none."""
    if compacted.summary is None:
        outgoing.count_loss("compactions without a summary")
        return None
    if compacted.boundary.kept and not outgoing.is_view:
        outgoing.count_loss("what compactions kept word for word")
    summary, hidden = compacted.summary, compacted.boundary.hidden
    return summary_message.wrap_summary(summary.text, summary.covers, hidden)
