"""What `lineage` tells people: a tree of boundaries, and which summary stands for which blocks."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ....domain.compaction_events import CompactionFailed, CompactionReverted, PreparationDropped
from ....projections.lineage_tree import Attempt, LineageTree, Node, Standing
from ...analysis.auditing.told_times import told_at
from .printing import clipped, counted, say, say_table, shortly

EXCERPT = 68


@dataclass(frozen=True, slots=True)
class Strokes:
    """What a tree is drawn with."""

    fork: str
    last: str
    beside: str
    dot: str


BOXES = Strokes("├─ ", "└─ ", "│  ", "● ")
ASCII = Strokes("|- ", "`- ", "|  ", "* ")


def say_trees(trees: Sequence[LineageTree], *, full: bool) -> None:
    """Each lineage in turn, and before more than one of them a table of all."""
    if len(trees) > 1:
        say_table(
            ["lineage", "compactions", "served", "summarised", "continues"],
            [
                [
                    tree.lineage,
                    len(tree.nodes),
                    str(tree.count(tree.served)) if tree.served else "all of the log",
                    shortly(tree.node(tree.served).covers, most=2) if tree.served else "",
                    tree.continues or "",
                ]
                for tree in trees
            ],
        )
        say()
    for number, tree in enumerate(trees):
        if number:
            say()
        for line in tree_lines(tree, _strokes(), full=full):
            say(line)


def tree_lines(tree: LineageTree, strokes: Strokes, *, full: bool = False) -> Iterator[str]:
    """A lineage as a tree; boundaries that build upon each other stand below each other."""
    served = (
        f"compaction {tree.count(tree.served)} is served"
        if tree.served
        else "all of the log is served"
    )
    went_on = f", continues {tree.continues}" if tree.continues else ""
    count = counted(len(tree.nodes), "compaction")
    yield f"{strokes.dot}{tree.session} on {tree.lineage}: {count}, {served}{went_on}"
    yield from _attempts(tree.attempts, 0, strokes.beside if tree.nodes else "   ")
    yield from _branch(tree, 0, "", strokes, full=full)
    for stand in tree.stands():
        blocks = f"{shortly(stand.blocks)} left with compaction {tree.count(stand.left_with)}"
        yield f"{blocks}; the summary of {tree.count(stand.summary)} stands for them"


def _branch(
    tree: LineageTree, number: int, indent: str, strokes: Strokes, *, full: bool
) -> Iterator[str]:
    # What a chain builds upon stands above it, however long the chain is: no deeper indent. Only
    # what leads nowhere is set aside.
    while True:
        children = tree.children(number)
        if not children:
            return
        *aside, main = sorted(children, key=lambda child: (_is_alive(child), child.number))
        for child in aside:
            yield from _node(tree, child, indent, strokes, is_last=False, full=full)
            yield from _branch(tree, child.number, indent + strokes.beside, strokes, full=full)
        is_last = not tree.children(main.number)
        yield from _node(tree, main, indent, strokes, is_last=is_last, full=full)
        number = main.number


def _is_alive(node: Node) -> bool:
    return node.standing in {Standing.SERVED, Standing.BUILT_UPON}


def _node(
    tree: LineageTree, node: Node, indent: str, strokes: Strokes, *, is_last: bool, full: bool
) -> Iterator[str]:
    boundary = node.boundary
    when = _day(told_at(boundary) or node.when)
    inherited = f", decided in {node.lineage}" if node.lineage != tree.lineage else ""
    yield (
        f"{indent}{strokes.last if is_last else strokes.fork}"
        f"{tree.count(node.number)} [{_standing(node)}] {boundary.trigger},"
        f" {boundary.policy}, {when}{inherited}"
    )
    inside = indent + ("   " if is_last else strokes.beside)
    for line in (*_about(tree, node), *_words(tree, node)):
        yield f"{inside}   {line}"
    if node.summary is not None:
        text = node.summary.text
        lines = text.split("\n") if full else [clipped(text, EXCERPT)]
        for line in lines:
            yield f"{inside}   | {line}"
    yield from _attempts(tree.attempts, node.number, inside)


def _standing(node: Node) -> str:
    return ", ".join(filter(None, (_became(node), _served(node))))


def _became(node: Node) -> str | None:
    match node.standing, node.ended_by:
        case Standing.SERVED, _:
            return None
        case Standing.DROPPED, PreparationDropped(reason=reason):
            return f"dropped: {reason}"
        case Standing.REVERTED, CompactionReverted(effective_from=at):
            return f"reverted at #{at}"
        case standing, _:
            return str(standing)


def _served(node: Node) -> str | None:
    if node.served_from is None:
        return None
    call = "" if node.first_call is None else f", call {node.first_call} on"
    return f"served from #{node.served_from}{call}"


def _about(tree: LineageTree, node: Node) -> Iterator[str]:
    boundary, summary = node.boundary, node.summary
    size = str(node.sizes)
    if summary is None:
        yield f"{size}; without a summary"
    else:
        by = f"{summary.summariser}{f' ({summary.model})' if summary.model else ''}"
        yield f"{size}; a summary of {counted(summary.tokens, 'token')} by {by}"
    if node.new:
        yield f"took out {shortly(node.new)}"
    if node.inherited and node.previous:
        yield f"takes over {shortly(node.inherited)} from {tree.count(node.previous)}"
    for what, positions in (("hidden", boundary.hidden), ("pinned", boundary.pinned)):
        if positions:
            yield f"{what} {shortly(positions)}"
    if boundary.trims:
        yield f"{counted(len(boundary.trims), 'result')} shown shortened"


def _words(tree: LineageTree, node: Node) -> Iterator[str]:
    """How much of it earlier summaries had said."""
    every = sum(node.words.values())
    earlier = {number: said for number, said in node.words.items() if number != node.number}
    if earlier:
        told = ", ".join(
            f"{said / every:.0%} from {tree.count(at)}" for at, said in earlier.items()
        )
        yield f"its words: {told}"


def _attempts(attempts: Sequence[Attempt], upon: int, indent: str) -> Iterator[str]:
    for attempt in attempts:
        if attempt.upon == upon:
            event = attempt.event
            failed = isinstance(event, CompactionFailed)
            yield f"{indent}x {'failed' if failed else 'draft rejected'}: {event.reason}"


def _strokes() -> Strokes:
    try:
        f"{BOXES.fork}{BOXES.last}{BOXES.beside}{BOXES.dot}".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return ASCII
    return BOXES


def _day(time: datetime) -> str:
    """By the clock of this machine."""
    return f"{time.astimezone():%Y-%m-%d %H:%M}"
