"""Implements `lineage` and `diff`: what each compaction replaced, and which facts it lost."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ....domain.compaction_events import (
    CompactBoundary,
    CompactionFailed,
    CompactionReverted,
    PreparationDropped,
    Summary,
)
from ....projections.audit_entries import find_source_time
from ....projections.lineage_tree import BoundaryNode, BoundaryStatus, FailedCompaction, LineageTree
from ....projections.lost_facts import LostFact
from ....projections.timestamps import format_timestamp
from ....projections.view_content import Coordinate
from ....projections.view_diff import ChangedBlock, DiffedBlock, ViewDiff
from ...analysis import diffs
from ...analysis.audit import list_session_lineages, read_lineage_trees
from ...analysis.diffs import REFERENCE_SYNTAX
from ..command_line.options import FULL, HTML, LINEAGE, SESSION, write_session_page
from ..command_line.printing import (
    clip_text,
    format_count,
    format_handles,
    format_shares,
    format_usd,
    list_fields,
    pick,
    print_fields,
    print_list,
    print_rows,
    print_text,
)
from ..command_line.sessions import name_to_json, open_call_session
from ..command_line.verbs import Answer, Invocation, argument, option
from ..command_line.views import format_coordinate, read_place

_EXCERPT_CELLS = 78
"""What is shown of a summary; `--full` shows all of it."""
MAX_LISTED = 20
_FACT_COLUMNS = ("fact", "kind", "handles", "by_user", "used_again", "told_again")


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


def diff(
    call: Invocation,
    session: str = SESSION,
    number: int | None = argument(
        "COMPACTION", "Which one, counted from 1; else the newest.", None, min=1
    ),
    *,
    lineage: str = LINEAGE,
    before: str | None = option("--from VIEW", f"The old view: {REFERENCE_SYNTAX}."),
    after: str | None = option("--to VIEW", "The new view, written likewise."),
    full: bool = FULL,
    html: Path | None = HTML,
) -> Answer:
    with open_call_session(call, session) as found:
        places = [
            None if word is None else read_place(found, word, lineage) for word in (before, after)
        ]
        found.log.check_lineage(lineage)
        boundary = None if number is None else diffs.find_boundary(found, number, lineage)
        compared = diffs.diff(found, boundary, lineage=lineage, before=places[0], after=places[1])
        ends = (compared.before, compared.boundary_before), (compared.after, compared.boundary)
        numbers = [
            diffs.number_compactions(found, at.lineage)[begin.originator_version] if begin else None
            for at, begin in ends
        ]
        page = write_session_page(found, html, lineage, full=full)
    most = None if full else MAX_LISTED
    return Answer(
        diff_to_json(compared, numbers) | {"page": page},
        partial(_print_diff, compared, numbers[1], most=most),
        *([f"wrote {page}"] if page else []),
    )


def diff_to_json(diff: ViewDiff, numbers: Sequence[int | None]) -> dict[str, Any]:
    """Return a comparison; `numbers` are the compactions that the views begin at, or None."""
    return {
        **pick(diff, "session namespace"),
        "before": _view_to_json(diff.before, diff.boundary_before, diff.tokens_before, numbers[0]),
        "after": _view_to_json(diff.after, diff.boundary, diff.tokens, numbers[1]),
        "tokens_basis": diff.sizes.basis,
        "left": [_block_to_json(block) for block in diff.removed],
        "came": [_block_to_json(block) for block in diff.added],
        "reshown": [_change_to_json(block) for block in diff.changed],
        **pick(diff, "stands_for=summarized_blocks without_a_word=unmentioned_blocks"),
        "summary": diff.summary and _summary_to_json(diff.summary),
        "summary_before": diff.summary_before and _summary_to_json(diff.summary_before),
        "request_changed": diff.is_request_changed,
        "lost": [_fact_to_json(fact) for fact in diff.lost_facts],
        "gained": [_fact_to_json(fact) for fact in diff.gained_facts],
    }


def _view_to_json(
    at: Coordinate, boundary: CompactBoundary | None, tokens: int, number: int | None
) -> dict[str, Any]:
    return {
        **pick(at, "lineage lineage_version at=position"),
        **pick(boundary, "boundary=originator_version"),
        "compaction": number,
        "tokens": tokens,
    }


def _block_to_json(block: DiffedBlock) -> dict[str, Any]:
    return {"handle": f"#{block.position}", **pick(block, "turn kind name tokens line")}


def _change_to_json(block: ChangedBlock) -> dict[str, Any]:
    return {"handle": f"#{block.position}", **pick(block, "kind tokens_before tokens")}


def _summary_to_json(summary: Summary) -> dict[str, Any]:
    return {
        **pick(summary, "boundary summariser=summarizer model tokens covers text sections"),
        "digest": summary.digest.model_dump(mode="json"),
    }


def _fact_to_json(fact: LostFact) -> dict[str, Any]:
    return pick(
        fact,
        "fact=text key kind handles times=block_count by_user uses used_again=later_uses"
        " told_again=repeated_at minor=is_minor",
    )


def _print_diff(diff: ViewDiff, number: int | None, *, most: int | None) -> None:
    print_text(f"{diff.session}: {_format_views(diff, number)}", bold=True)
    if diff.is_empty:
        print_text("Both views are the same.")
        return
    print_fields(_diff_fields(diff))
    hint = ": --full lists all"
    changed = [_change_to_json(block) for block in diff.changed]
    print_rows(changed, "tokens shown of blocks that stay", most, hint)
    _print_facts("lost", "nowhere in the new view", diff.lost_facts, most)
    _print_facts("gained", "nowhere in the old view", diff.gained_facts, most)
    for what, blocks in (("left", diff.removed), ("came in", diff.added)):
        rows = [_block_to_json(block) for block in blocks]
        print_rows(rows, f"{format_count(len(blocks), 'block')} {what}", most, hint)
    if diff.has_new_summary and diff.summary is not None:
        heading = f"the summary, by {diff.summary.summarizer}"
        print_list(heading, diff.summary.text.split("\n"), most, hint)


def _diff_fields(diff: ViewDiff) -> Iterator[tuple[str, str]]:
    yield "view", str(diff.sizes)
    yield "left", format_shares(diff.shares)
    if diff.is_request_changed:
        yield "request", "system prompt, tools or settings are others"
    if summary := diff.summary:
        size = format_count(summary.tokens, "token")
        same = "" if diff.has_new_summary else ", as before"
        yield "instead", f"a summary of {size} by {summary.summarizer}{same}"
        yield "replaces", format_handles(summary.covers)
        yield from list_fields(pick(summary.digest, "modified=modified_files read=read_files"))
    if diff.unmentioned_blocks:
        yield "nothing", f"replaces {format_handles(diff.unmentioned_blocks)}"


def _format_views(diff: ViewDiff, number: int | None) -> str:
    views = f"{format_coordinate(diff.before)} -> {format_coordinate(diff.after)}"
    if diff.boundary is None:
        return views
    by = f"by {diff.boundary.policy} ({diff.boundary.trigger})"
    return f"compaction {number} on {diff.after.lineage}, {by}: {views}"


def _print_facts(what: str, where: str, facts: Sequence[LostFact], most: int | None) -> None:
    shown = [fact for fact in facts if most is None or not fact.is_minor]
    kinds = Counter(str(fact.kind) for fact in shown).most_common()
    counts = ", ".join(format_count(number, kind) for kind, number in kinds)
    title = f"{what}: {format_count(len(shown), 'fact')} {where}"
    facts_json = map(_fact_to_json, shown)
    rows = [{name: fact[name] for name in _FACT_COLUMNS} for fact in facts_json]
    print_rows(rows, title, most, ": --full lists all")
    if shown:
        print_text(f"  in all: {counts}")
    if minor := len(facts) - len(shown):
        print_text(f"  left out: {minor:,} unused numbers and words of tool calls")
