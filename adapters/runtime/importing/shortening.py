"""Records that a source shortened earlier blocks without taking any out."""

from collections.abc import Iterable, Mapping
from typing import Any

from ....domain.blocks import ToolResult
from ....domain.compaction import RECORDED_LINEAGE, derive_lineage_id
from ....domain.compaction_events import Replacement
from ....domain.ranges import Ranges
from ....domain.token_estimate import estimate_text
from ...storage.event_log.stored_row import AppendKey
from ...storage.view_reader import ViewReader
from ...transcripts.formats.steps import ReplacementText, SourceShortening
from ..sessions.stored_session import StoredSession


def record_shortening(
    session: StoredSession, placed: Mapping[str, tuple[int, int]], step: SourceShortening
) -> None:
    """Record a boundary that keeps all blocks of the recorded lineage, some with other text.

    `placed` has the positions of the first and last block of each entry. Does nothing if no such
    block is in the view.
    """
    events, namespace, key = session.log.events, session.namespace, session.key
    with events.lock_streams(derive_lineage_id(namespace, key, RECORDED_LINEAGE)):
        reader = ViewReader(events, namespace, key, RECORDED_LINEAGE)
        view = reader.read_view()
        shown = {entry.position: entry for entry in view.entries}
        texts = find_replacement_texts(session, placed, step.replacements)
        if not texts.keys() & shown.keys():
            return
        earlier, summary = view.boundary, view.summary
        if earlier:
            texts = {one.position: one.text for one in earlier.replacements} | texts
        head = events.read_head(events.find_session_chain(namespace, key))[0]
        base = earlier.after if earlier else 0
        retracted = reader.read_retracted(head)
        kept = ((earlier.kept if earlier else Ranges()) | Ranges.span(base + 1, head)) - retracted
        events.refresh(derive_lineage_id(namespace, key, RECORDED_LINEAGE))
        lineage = events.open_compaction(namespace, key, RECORDED_LINEAGE)
        saved = sum(
            shown[position].tokens - estimate_text(text)
            for position, text in texts.items()
            if position in shown
        )
        pre_tokens = step.pre_tokens or view.tokens
        boundary = lineage.record_boundary(
            {
                "after": head,
                "first_kept": kept.runs[0][0],
                "kept": kept,
                "trims": earlier.trims if earlier else (),
                "replacements": tuple(
                    Replacement(position=position, text=text)
                    for position, text in sorted(texts.items())
                    if position in kept
                ),
                "trigger": step.trigger,
                "policy": RECORDED_LINEAGE,
                "pre_tokens": pre_tokens,
                "post_tokens": step.post_tokens or max(0, pre_tokens - saved),
                "previous": lineage.state.active or None,
                "source_time": step.source_time,
                "partial": step.partial_reason,
            },
            _carry_summary(summary) if summary else None,
            based_on=lineage.state.decided,
            activate_at=head,
        )
        events.save(lineage, keys=[AppendKey(session.log.id, step.key, boundary, boundary)])


def _carry_summary(summary: Any) -> dict[str, Any]:
    """Return the fields of the summary served before, which stays valid."""
    return {name: getattr(summary, name) for name in ("text", "covers", "summariser", "tokens")}


def find_replacement_texts(
    session: StoredSession,
    placed: Mapping[str, tuple[int, int]],
    instead: Iterable[ReplacementText],
) -> dict[int, str]:
    texts: dict[int, str] = {}
    for one in instead:
        if one.source_id not in placed:
            continue
        for recalled in session.recall(Ranges.span(*placed[one.source_id])):
            block = recalled.block
            wanted = one.tool_call_id
            if wanted is None or (isinstance(block, ToolResult) and block.tool_call_id == wanted):
                texts[recalled.position] = one.text
    return texts
