"""Implements `lineage`: which summary replaces which blocks, as trees of boundaries."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ....domain.compaction_events import CompactionFailed, CompactionReverted, PreparationDropped
from ....projections.audit_entries import find_source_time
from ....projections.lineage_tree import BoundaryNode, BoundaryStatus, FailedCompaction, LineageTree
from ....projections.read_models.timestamps import format_timestamp
from ...analysis.auditing.lineages import list_session_lineages, read_lineage_trees
from ..command_line.options import FULL, HTML, SESSION, write_session_page
from ..command_line.printing import (
    clip_text,
    format_count,
    format_handles,
    list_fields,
    pick,
)
from ..command_line.sessions import name_to_json, open_call_session
from ..command_line.verbs import Answer, Invocation, option

_EXCERPT_CHARACTERS = 68
_IN_USE = {BoundaryStatus.SERVED, BoundaryStatus.BUILT_UPON}


def lineage(
    call: Invocation,
    session: str = SESSION,
    named: str | None = option("--lineage NAME", "Only this one; else all that there are."),
    html: Path | None = HTML,
    full: bool = FULL,
) -> Answer:
    with open_call_session(call, session) as found:
        if named is not None:
            found.log.check_lineage(named)
        trees = read_lineage_trees(found, [named] if named else list_session_lineages(found))
        page = write_session_page(found, html, named, full=full)
    lineages = [lineage_to_json(tree) for tree in trees]
    lines = [line for tree in trees for line in format_tree(tree, full=full)]
    lines = lines or [f"Nothing was compacted in {found.key} yet: its view is all of the log."]
    lines += [f"wrote {page}"] if page else []
    return Answer(name_to_json(found) | {"page": page, "lineages": lineages}, *lines)


def lineage_to_json(tree: LineageTree) -> dict[str, Any]:
    return {
        **pick(tree, "lineage continues=continued_lineage lineage_version=version"),
        "served": tree.served or None,
        "boundaries": [
            _node_to_json(node, number) for number, node in enumerate(tree.nodes, start=1)
        ],
        "attempts": [_attempt_to_json(attempt) for attempt in tree.attempts],
        "stands": [
            pick(stand, "blocks left_with=removed_by summary")
            for stand in tree.list_summarized_blocks()
        ],
    }


def _node_to_json(node: BoundaryNode, number: int) -> dict[str, Any]:
    boundary, summary = node.boundary, node.summary
    return {
        "boundary": node.number,
        "compaction": number,
        **pick(node, "previous decided_in=lineage standing=status"),
        **pick(boundary, "trigger policy"),
        "when": format_timestamp(find_source_time(boundary) or node.drawn_at),
        **pick(node.sizes, "pre_tokens=before post_tokens=after tokens_basis=basis"),
        **pick(boundary, "after first_kept"),
        **pick(node, "new=new_blocks inherited=inherited_blocks"),
        **pick(boundary, "hidden pinned"),
        "trims": len(boundary.trims),
        "split_turn": boundary.split_turn.turn if boundary.split_turn else None,
        **pick(node, "served_from first_call"),
        **pick(summary, "summariser=summarizer model cost_usd summary_tokens=tokens summary=text"),
    }


def _attempt_to_json(attempt: FailedCompaction) -> dict[str, Any]:
    event = attempt.event
    failed = event if isinstance(event, CompactionFailed) else None
    return {
        "upon": attempt.based_on or None,
        "when": format_timestamp(event.timestamp),
        "outcome": "failed" if failed else "rejected",
        "reason": event.reason,
        "tried": list(failed.tried) if failed else [],
        **pick(failed, "stood_in"),
    }


def format_tree(tree: LineageTree, *, full: bool = False) -> Iterator[str]:
    """Yield the lines of a tree; each boundary is below the one that it builds upon."""
    served = (
        f"compaction {tree.find_compaction_number(tree.served)} is served"
        if tree.served
        else "all of the log is served"
    )
    went_on = f", continues {tree.continued_lineage}" if tree.continued_lineage else ""
    count = format_count(len(tree.nodes), "compaction")
    yield f"* {tree.session} on {tree.lineage}: {count}, {served}{went_on}"
    yield from (f"|  {line}" for line in _attempt_lines(tree, 0))
    yield from _format_branch(tree, 0, "", full=full)
    for stand in tree.list_summarized_blocks():
        left_with = tree.find_compaction_number(stand.removed_by)
        summary = tree.find_compaction_number(stand.summary)
        blocks = f"{format_handles(stand.blocks)} left with compaction {left_with}"
        yield f"{blocks}; the summary of {summary} replaces them"


def _format_branch(tree: LineageTree, number: int, indent: str, *, full: bool) -> Iterator[str]:
    # A chain is not indented, however long it is; only dead ends are.
    while children := tree.list_children(number):
        children = sorted(children, key=lambda child: (child.status in _IN_USE, child.number))
        main = children[-1]
        for child in children:
            is_last = child is main and not tree.list_children(main.number)
            lead, inside = ("`- ", "   ") if is_last else ("|- ", "|  ")
            first, *others = _node_lines(tree, child, full=full)
            yield indent + lead + first
            yield from (indent + inside + line for line in others)
            if child is not main:
                yield from _format_branch(tree, child.number, f"{indent}|  ", full=full)
        number = main.number


def _node_lines(tree: LineageTree, node: BoundaryNode, *, full: bool) -> Iterator[str]:
    boundary, summary = node.boundary, node.summary
    when = (find_source_time(boundary) or node.drawn_at).astimezone()
    inherited = f", decided in {node.lineage}" if node.lineage != tree.lineage else ""
    yield (
        f"{tree.find_compaction_number(node.number)} [{_format_standing(node)}] {boundary.trigger},"
        f" {boundary.policy}, {when:%Y-%m-%d %H:%M}{inherited}"
    )
    shown = {
        "size": str(node.sizes),
        **pick(summary, "summary_tokens=tokens by=summarizer model"),
        **pick(node, "took_out=new_blocks takes_over=inherited_blocks"),
        **pick(boundary, "hidden pinned"),
        "results_shortened": len(boundary.trims) or None,
    }
    for label, text in list_fields(shown):
        yield f"   {label} {text}"
    if summary is not None:
        text = summary.text
        for line in text.split("\n") if full else [clip_text(text, _EXCERPT_CHARACTERS)]:
            yield f"   | {line}"
    yield from _attempt_lines(tree, node.number)


def _format_standing(node: BoundaryNode) -> str:
    parts = [] if node.status is BoundaryStatus.SERVED else [str(node.status)]
    match node.ended_by:
        case PreparationDropped(reason=reason):
            parts = [f"dropped: {reason}"]
        case CompactionReverted(effective_from=at):
            parts = [f"reverted at #{at}"]
    if node.served_from is not None:
        parts.append(f"served from #{node.served_from}")
        parts += [f"call {node.first_call} on"] if node.first_call is not None else []
    return ", ".join(parts)


def _attempt_lines(tree: LineageTree, upon: int) -> Iterator[str]:
    for attempt in tree.attempts:
        if attempt.based_on == upon:
            failed = isinstance(attempt.event, CompactionFailed)
            yield f"x {'failed' if failed else 'draft rejected'}: {attempt.event.reason}"
