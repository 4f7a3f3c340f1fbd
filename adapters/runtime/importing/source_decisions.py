"""Records what a source did to its own session: a rewind, a compaction or a shortening."""

from collections.abc import Iterable, Mapping
from typing import Any

from ....domain.blocks import ToolResult
from ....domain.compaction import RECORDED_LINEAGE, UNSHOWN_SUMMARIZER
from ....domain.compaction_events import Repair, Replacement
from ....domain.ranges import Ranges
from ....domain.token_estimate import estimate_text
from ...storage.event_log.log_tables import AppendKey
from ...transcripts.formats.steps import (
    REWOUND,
    ReplacementText,
    Rewind,
    SourceCompaction,
)
from ..sessions.block_groups import SessionBlocks
from ..sessions.stored_session import StoredSession

SourcePositions = Mapping[str, tuple[int, int]]
"""The positions of each entry's first and last block, by source id."""


def record_shortening(
    session: StoredSession, placed: SourcePositions, step: SourceCompaction
) -> None:
    """Record a boundary that keeps all blocks of the recorded lineage, some with other text.

    Does nothing if no such block is in the view.
    """
    events, namespace, key = session.log.events, session.namespace, session.key
    with events.lock_streams(events.find_lineage_id(namespace, key, RECORDED_LINEAGE)):
        reader = session.log.reader(RECORDED_LINEAGE)
        view = reader.read_view()
        shown = {entry.position: entry for entry in view.entries}
        texts = _find_replacement_texts(session, placed, step.replacements)
        if not texts.keys() & shown.keys():
            return
        earlier, summary = view.boundary, view.summary
        if earlier:
            texts = {one.position: one.text for one in earlier.replacements} | texts
        head = session.position
        base = earlier.after if earlier else 0
        kept = (earlier.kept if earlier else Ranges()) | Ranges.span(base + 1, head)
        pre_tokens = step.pre_tokens or view.tokens
        saved = sum(
            shown[position].tokens - estimate_text(text)
            for position, text in texts.items()
            if position in shown
        )
        fields = {
            "trims": earlier.trims if earlier else (),
            "pre_tokens": pre_tokens,
            "post_tokens": step.post_tokens or max(0, pre_tokens - saved),
        }
        # The summary that was served before stays valid.
        carried = ("text", "covers", "summarizer", "tokens")
        same = {name: getattr(summary, name) for name in carried} if summary else None
        _save_boundary(session, step, head, kept - reader.read_retracted(head), texts, fields, same)


def record_source_compaction(
    session: StoredSession, placed: SourcePositions, step: SourceCompaction
) -> None:
    """Record the source's boundary and summary, as far as the source shows them."""
    events, namespace, key = session.log.events, session.namespace, session.key
    with events.lock_streams(events.find_lineage_id(namespace, key, RECORDED_LINEAGE)):
        head, state = events.read_head(session.log.chain())
        blocks = SessionBlocks(session.log.reader(RECORDED_LINEAGE), head)
        named = Ranges(placed[id] for id in step.kept_ids if id in placed)
        wanted = (named | Ranges.of(state.open_calls.values())) - blocks.retracted
        kept = blocks.close_groups(wanted) if wanted else wanted
        text = step.summary or "[the source does not show the summary that it made]"
        tokens = estimate_text(text)
        fields = {
            "pre_tokens": step.pre_tokens or state.tokens,
            "post_tokens": step.post_tokens or tokens,
            "repairs": _find_repairs(named, kept),
        }
        summary = {
            "text": text,
            "covers": Ranges.span(1, head) - kept - blocks.retracted,
            "summarizer": RECORDED_LINEAGE if step.summary else UNSHOWN_SUMMARIZER,
            "tokens": tokens,
            **(step.summary_call or {}),
        }
        texts = _find_replacement_texts(session, placed, step.replacements)
        _save_boundary(session, step, head, kept, texts, fields, summary)


def _save_boundary(  # noqa: PLR0917 - the parts of a boundary
    session: StoredSession,
    step: SourceCompaction,
    head: int,
    kept: Ranges,
    texts: Mapping[int, str],
    fields: Mapping[str, Any],
    summary: Mapping[str, Any] | None,
) -> None:
    events, namespace, key = session.log.events, session.namespace, session.key
    events.refresh(events.find_lineage_id(namespace, key, RECORDED_LINEAGE))
    lineage = events.open_compaction(namespace, key, RECORDED_LINEAGE)
    boundary = lineage.record_boundary(
        {
            "after": head,
            "first_kept": kept.runs[0][0] if kept else head + 1,
            "kept": kept,
            "replacements": tuple(
                Replacement(position=position, text=text)
                for position, text in sorted(texts.items())
                if position in kept
            ),
            "trigger": step.trigger,
            "policy": RECORDED_LINEAGE,
            "previous": lineage.state.active or None,
            "source_time": step.source_time,
            "partial": step.partial_reason,
            **fields,
        },
        summary,
        based_on=lineage.state.decided,
        activate_at=head,
    )
    events.save(lineage, keys=[AppendKey(session.log.id, step.key, boundary, boundary)])


def _find_replacement_texts(
    session: StoredSession, placed: SourcePositions, instead: Iterable[ReplacementText]
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


def record_rewind(session: StoredSession, placed: SourcePositions, step: Rewind) -> None:
    """Retract all blocks after the entry to which the source went back."""
    events, namespace, key = session.log.events, session.namespace, session.key
    first = placed[step.to][1] + 1 if step.to and step.to in placed else 1
    with events.lock_streams(session.log.id):
        events.refresh(session.log.id)
        aggregate = events.load_session(namespace, key)
        assert aggregate is not None, "the session was opened"
        blocks = SessionBlocks(session.log.reader(), aggregate.version)
        wanted = Ranges.span(first, aggregate.version) - blocks.retracted
        if not wanted:
            return
        positions, reopened = blocks.close_retraction(wanted, aggregate.state.open_calls)
        aggregate.retract(positions, reopened, REWOUND)
        at = aggregate.version
        events.save(aggregate, keys=[AppendKey(session.log.id, step.key, at, at)])


def _find_repairs(named: Ranges, kept: Ranges) -> tuple[Repair, ...]:
    if named == kept or not kept:
        return ()
    wanted = named.runs[0][0] if named else kept.runs[0][0]
    return (Repair(rule="whole-groups", wanted=wanted, got=kept.runs[0][0]),)
