"""Prints lineages as trees of boundaries, with the blocks that each summary replaced."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ....domain.compaction_events import CompactionFailed, CompactionReverted, PreparationDropped
from ....projections.audit_entries import find_source_time
from ....projections.lineage_tree import BoundaryNode, BoundaryStatus, FailedCompaction, LineageTree
from .printing import clip_text, format_count, format_handles, print_table, print_text

_EXCERPT_CHARACTERS = 68


@dataclass(frozen=True, slots=True)
class TreeStrokes:
    """The characters that draw a tree."""

    fork: str
    last: str
    bar: str
    dot: str


BOX_STROKES = TreeStrokes("├─ ", "└─ ", "│  ", "● ")
ASCII_STROKES = TreeStrokes("|- ", "`- ", "|  ", "* ")


def print_trees(trees: Sequence[LineageTree], *, full: bool) -> None:
    """Print each lineage; before several, a table of all."""
    if len(trees) > 1:
        print_table(
            ["lineage", "compactions", "served", "summarised", "continues"],
            [
                [
                    tree.lineage,
                    len(tree.nodes),
                    str(tree.find_compaction_number(tree.served))
                    if tree.served
                    else "all of the log",
                    format_handles(tree.find_node(tree.served).covers, most=2)
                    if tree.served
                    else "",
                    tree.continued_lineage or "",
                ]
                for tree in trees
            ],
        )
        print_text()
    for number, tree in enumerate(trees):
        if number:
            print_text()
        for line in format_tree(tree, _choose_strokes(), full=full):
            print_text(line)


def format_tree(tree: LineageTree, strokes: TreeStrokes, *, full: bool = False) -> Iterator[str]:
    """Yield the lines of a tree; each boundary is below the one that it builds upon."""
    served = (
        f"compaction {tree.find_compaction_number(tree.served)} is served"
        if tree.served
        else "all of the log is served"
    )
    went_on = f", continues {tree.continued_lineage}" if tree.continued_lineage else ""
    count = format_count(len(tree.nodes), "compaction")
    yield f"{strokes.dot}{tree.session} on {tree.lineage}: {count}, {served}{went_on}"
    yield from _format_attempts(tree.attempts, 0, strokes.bar if tree.nodes else "   ")
    yield from _format_branch(tree, 0, "", strokes, full=full)
    for stand in tree.list_summarized_blocks():
        blocks = (
            f"{format_handles(stand.blocks)} left with compaction "
            f"{tree.find_compaction_number(stand.removed_by)}"
        )
        yield (
            f"{blocks}; the summary of {tree.find_compaction_number(stand.summary)} stands for them"
        )


def _format_branch(
    tree: LineageTree, number: int, indent: str, strokes: TreeStrokes, *, full: bool
) -> Iterator[str]:
    # A chain is not indented, however long it is; only dead ends are.
    while True:
        children = tree.list_children(number)
        if not children:
            return
        *aside, main = sorted(children, key=lambda child: (_is_in_use(child), child.number))
        for child in aside:
            yield from _format_node(tree, child, indent, strokes, is_last=False, full=full)
            yield from _format_branch(tree, child.number, indent + strokes.bar, strokes, full=full)
        is_last = not tree.list_children(main.number)
        yield from _format_node(tree, main, indent, strokes, is_last=is_last, full=full)
        number = main.number


def _is_in_use(node: BoundaryNode) -> bool:
    return node.status in {BoundaryStatus.SERVED, BoundaryStatus.BUILT_UPON}


def _format_node(
    tree: LineageTree,
    node: BoundaryNode,
    indent: str,
    strokes: TreeStrokes,
    *,
    is_last: bool,
    full: bool,
) -> Iterator[str]:
    boundary = node.boundary
    when = _format_day(find_source_time(boundary) or node.drawn_at)
    inherited = f", decided in {node.lineage}" if node.lineage != tree.lineage else ""
    yield (
        f"{indent}{strokes.last if is_last else strokes.fork}"
        f"{tree.find_compaction_number(node.number)} [{_format_standing(node)}] {boundary.trigger},"
        f" {boundary.policy}, {when}{inherited}"
    )
    inside = indent + ("   " if is_last else strokes.bar)
    for line in (*_node_details(tree, node), *_describe_summary(tree, node)):
        yield f"{inside}   {line}"
    if node.summary is not None:
        text = node.summary.text
        lines = text.split("\n") if full else [clip_text(text, _EXCERPT_CHARACTERS)]
        for line in lines:
            yield f"{inside}   | {line}"
    yield from _format_attempts(tree.attempts, node.number, inside)


def _format_standing(node: BoundaryNode) -> str:
    return ", ".join(filter(None, (_format_outcome(node), _format_served(node))))


def _format_outcome(node: BoundaryNode) -> str | None:
    match node.status, node.ended_by:
        case BoundaryStatus.SERVED, _:
            return None
        case BoundaryStatus.DROPPED, PreparationDropped(reason=reason):
            return f"dropped: {reason}"
        case BoundaryStatus.REVERTED, CompactionReverted(effective_from=at):
            return f"reverted at #{at}"
        case standing, _:
            return str(standing)


def _format_served(node: BoundaryNode) -> str | None:
    if node.served_from is None:
        return None
    call = "" if node.first_call is None else f", call {node.first_call} on"
    return f"served from #{node.served_from}{call}"


def _node_details(tree: LineageTree, node: BoundaryNode) -> Iterator[str]:
    boundary, summary = node.boundary, node.summary
    size = str(node.sizes)
    if summary is None:
        yield f"{size}; without a summary"
    else:
        by = f"{summary.summariser}{f' ({summary.model})' if summary.model else ''}"
        yield f"{size}; a summary of {format_count(summary.tokens, 'token')} by {by}"
    if node.new_blocks:
        yield f"took out {format_handles(node.new_blocks)}"
    if node.inherited_blocks and node.previous:
        yield (
            f"takes over {format_handles(node.inherited_blocks)} from "
            f"{tree.find_compaction_number(node.previous)}"
        )
    for what, positions in (("hidden", boundary.hidden), ("pinned", boundary.pinned)):
        if positions:
            yield f"{what} {format_handles(positions)}"
    if boundary.trims:
        yield f"{format_count(len(boundary.trims), 'result')} shown shortened"


def _describe_summary(tree: LineageTree, node: BoundaryNode) -> Iterator[str]:
    """Describe how much of the summary repeats earlier summaries."""
    every = sum(node.word_origins.values())
    earlier = {number: said for number, said in node.word_origins.items() if number != node.number}
    if earlier:
        told = ", ".join(
            f"{said / every:.0%} from {tree.find_compaction_number(at)}"
            for at, said in earlier.items()
        )
        yield f"its words: {told}"


def _format_attempts(attempts: Sequence[FailedCompaction], upon: int, indent: str) -> Iterator[str]:
    for attempt in attempts:
        if attempt.based_on == upon:
            event = attempt.event
            failed = isinstance(event, CompactionFailed)
            yield f"{indent}x {'failed' if failed else 'draft rejected'}: {event.reason}"


def _choose_strokes() -> TreeStrokes:
    try:
        f"{BOX_STROKES.fork}{BOX_STROKES.last}{BOX_STROKES.bar}{BOX_STROKES.dot}".encode(
            sys.stdout.encoding or "ascii"
        )
    except UnicodeEncodeError:
        return ASCII_STROKES
    return BOX_STROKES


def _format_day(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M}"
