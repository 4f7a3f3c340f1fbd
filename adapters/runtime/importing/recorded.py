"""Takes over what a source did to its own session: it went back, or compacted it."""

from collections.abc import Mapping

from ....domain.compaction import NOT_SHOWN, RECORDED, lineage_id
from ....domain.compaction_events import Repair, Replacement
from ....domain.ranges import Ranges
from ....domain.token_budget import estimate_text
from ...storage.event_log.recorder import AppendKey
from ...storage.view_reader import ViewReader
from ...transcripts.formats.steps import Compacted, Rewind
from ..sessions.retraction import closed_retraction
from ..sessions.stored_session import StoredSession
from ..sessions.whole_groups import whole_groups
from .shortening import texts_instead

Placed = Mapping[str, tuple[int, int]]
"""Source ids of entries, and the positions of each one's first and last block."""


def rewind(session: StoredSession, placed: Placed, step: Rewind) -> None:
    """Take back all blocks after those of the entry that the source went back to."""
    events, namespace, key = session.log.events, session.namespace, session.key
    first = placed[step.to][1] + 1 if step.to and step.to in placed else 1
    with events.deciding_on(session.log.id):
        events.refresh(session.log.id)
        aggregate = events.session(namespace, key)
        assert aggregate is not None, "the session was opened"
        chain = events.session_chain(namespace, key)
        gone = ViewReader(events, namespace, key, RECORDED).retracted(aggregate.version)
        wanted = Ranges.span(first, aggregate.version) - gone
        if not wanted:
            return
        closed = closed_retraction(
            events,
            chain,
            wanted,
            retracted=gone,
            head=aggregate.version,
            open_calls=aggregate.state.open_calls,
        )
        aggregate.retract(closed.positions, closed.reopened, "rewound in the source")
        at = aggregate.version
        events.save(aggregate, keys=[AppendKey(session.log.id, step.key, at, at)])


def compact(session: StoredSession, placed: Placed, step: Compacted) -> None:
    """Draw the boundary that the source drew, and record its summary, as far as it shows them."""
    events, namespace, key = session.log.events, session.namespace, session.key
    with events.deciding_on(lineage_id(namespace, key, RECORDED)):
        chain = events.session_chain(namespace, key)
        head, state = events.head(chain)
        retracted = ViewReader(events, namespace, key, RECORDED).retracted(head)
        named = Ranges(placed[id] for id in step.kept if id in placed)
        wanted = (named | Ranges.of(state.open_calls.values())) - retracted
        kept = whole_groups(events, chain, wanted, head, retracted)
        events.refresh(lineage_id(namespace, key, RECORDED))
        lineage = events.opened_compaction(namespace, key, RECORDED)
        text = step.summary or "[the source does not show the summary that it made]"
        texts = texts_instead(session, placed, step.instead)
        boundary = lineage.draw(
            {
                "after": head,
                "first_kept": kept.runs[0][0] if kept else head + 1,
                "kept": kept,
                "replacements": tuple(
                    Replacement(position=position, text=shown)
                    for position, shown in sorted(texts.items())
                    if position in kept
                ),
                "trigger": step.trigger,
                "policy": RECORDED,
                "pre_tokens": step.pre_tokens or state.tokens,
                "post_tokens": step.post_tokens or estimate_text(text),
                "repairs": _repairs(named, kept),
                "previous": lineage.state.active or None,
                "source_time": step.source_time,
                "partial": step.partial,
            },
            {
                "text": text,
                "covers": Ranges.span(1, head) - kept - retracted,
                "summariser": RECORDED if step.summary else NOT_SHOWN,
                "tokens": estimate_text(text),
            },
            planned_on=lineage.state.decided,
            activate_at=head,
        )
        events.save(lineage, keys=[AppendKey(session.log.id, step.key, boundary, boundary)])


def _repairs(named: Ranges, kept: Ranges) -> tuple[Repair, ...]:
    if named == kept or not kept:
        return ()
    wanted = named.runs[0][0] if named else kept.runs[0][0]
    return (Repair(rule="whole-groups", wanted=wanted, got=kept.runs[0][0]),)
