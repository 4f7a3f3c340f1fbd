"""Writes a compaction as a user message, since Gemini's formats have no compactions."""

from .....projections.rendering import summary_message
from ..outgoing import OutgoingCompaction, OutgoingSession


def make_summary_text(outgoing: OutgoingSession, compacted: OutgoingCompaction) -> str | None:
    """Return the summary in its mark, by which the reader recognizes it; None without a summary."""
    if compacted.summary is None:
        outgoing.count_loss("compactions without a summary")
        return None
    if compacted.boundary.kept and not outgoing.is_view:
        outgoing.count_loss("what compactions kept word for word")
    summary, hidden = compacted.summary, compacted.boundary.hidden
    return summary_message.wrap_summary(summary.text, summary.covers, hidden)
