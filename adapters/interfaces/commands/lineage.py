"""Implements `lineage`: which summary replaces which blocks, boundary by boundary."""

from functools import partial
from pathlib import Path
from typing import Any

from ....domain.compaction_events import CompactionFailed, CompactionReverted, PreparationDropped
from ....projections.audit_entries import find_source_time
from ....projections.lineage_tree import BoundaryNode, BoundaryStatus, FailedCompaction, LineageTree
from ....projections.read_models.timestamps import format_timestamp
from ...analysis.auditing.audit import list_session_lineages, read_lineage_trees
from ..command_line.options import FULL, HTML, SESSION, write_session_page
from ..command_line.printing import (
    clip_text,
    format_count,
    format_usd,
    list_fields,
    pick,
    print_fields,
    print_rows,
    print_text,
)
from ..command_line.sessions import name_to_json, open_call_session
from ..command_line.verbs import Answer, Invocation, option

_EXCERPT_CELLS = 78
"""What is shown of a summary; `--full` shows all of it."""


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
    nothing = f"Nothing was compacted in {found.key} yet: its view is all of the log."
    return Answer(
        name_to_json(found) | {"page": page, "lineages": lineages},
        *(partial(print_lineage, tree, full=full) for tree in trees),
        *([] if trees else [nothing]),
        *([f"wrote {page}"] if page else []),
    )


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


def print_lineage(tree: LineageTree, *, full: bool = False) -> None:
    """Print the boundaries in order, the attempts that failed, and what replaces what left."""
    find_number = tree.find_compaction_number
    served = f"compaction {find_number(tree.served)}" if tree.served else "all of the log"
    went_on = f", continues {tree.continued_lineage}" if tree.continued_lineage else ""
    count = format_count(len(tree.nodes), "compaction")
    print_text(f"{tree.session} on {tree.lineage}: {count}, {served} is served{went_on}")
    for number, node in enumerate(tree.nodes, start=1):
        boundary, summary = node.boundary, node.summary
        print_text(f"\ncompaction {number} [{_format_standing(node)}]", bold=True)
        shown = {
            "builds_on": node.previous and f"compaction {find_number(node.previous)}",
            "when": find_source_time(boundary) or node.drawn_at,
            **pick(boundary, "trigger policy"),
            "decided_in": node.lineage if node.lineage != tree.lineage else None,
            "size": str(node.sizes),
            **pick(summary, "summary_tokens=tokens by=summarizer model"),
            "cost": format_usd(summary.cost_usd) if summary and summary.cost_usd else None,
            **pick(node, "took_out=new_blocks takes_over=inherited_blocks"),
            **pick(boundary, "hidden pinned"),
            "results_shortened": len(boundary.trims),
        }
        print_fields(list_fields({name: value for name, value in shown.items() if value != 0}))
        text = summary.text if summary else ""
        for line in text.split("\n") if full else filter(None, [clip_text(text, _EXCERPT_CELLS)]):
            print_text(f"| {line}")
    attempts = [
        {
            "upon": attempt.based_on and find_number(attempt.based_on),
            "what": "failed" if isinstance(attempt.event, CompactionFailed) else "draft rejected",
            "why": attempt.event.reason,
        }
        for attempt in tree.attempts
    ]
    print_rows(attempts, "attempts that failed")
    replaced = [
        {
            "blocks": stand.blocks,
            "left with": f"compaction {find_number(stand.removed_by)}",
            "replaced by": f"the summary of {find_number(stand.summary)}",
        }
        for stand in tree.list_summarized_blocks()
    ]
    print_rows(replaced, "what replaces the blocks that left")


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
