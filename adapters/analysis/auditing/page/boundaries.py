"""Renders the boundaries of a session as HTML: what each removed, replaced and lost."""

from collections import Counter
from collections.abc import Iterator, Sequence

from .....domain.compaction_events import CompactionFailed
from .....projections.diffing.lost_facts import LostFact
from .....projections.diffing.view_diff import ViewDiff
from .....projections.lineage_tree import LineageTree
from .....projections.read_models.timestamps import format_timestamp
from ..source_times import find_source_time
from .chart import make_boundary_id
from .history import render_handles
from .markup import Markup, format_plural, join_markup, make_tag
from .page_selection import PageSelection
from .page_story import PageBoundary, PageStory

_MAX_FACTS = 40
MAX_LISTED_BLOCKS = 60


def render_boundaries(story: PageStory, cuts: PageSelection) -> Iterator[Markup]:
    """Yield each lineage and its boundaries, oldest first."""
    told = {one.key: one for one in story.boundaries}
    for tree in story.trees:
        served = (
            f"compaction {tree.find_compaction_number(tree.served)}"
            if tree.served
            else "all of the log"
        )
        went_on = f", continues {tree.continued_lineage}" if tree.continued_lineage else ""
        yield make_tag("h3", f"Lineage {tree.lineage}")
        yield make_tag(
            "p",
            f"{format_plural(len(tree.nodes), 'compaction', 'compactions')}, {served} is "
            f"served{went_on}",
        )
        for node in tree.nodes:
            one = told.get((node.lineage, node.number))
            if one is not None and node.lineage != tree.lineage:
                name = (
                    f"compaction {tree.find_compaction_number(node.number)}, decided in "
                    f"{node.lineage}"
                )
                yield make_tag("p", make_tag("a", name, href=f"#{make_boundary_id(one.key)}"))
            elif one is not None:
                yield _render_boundary(one, tree, cuts)
        yield from _render_attempts(tree)


def _render_boundary(told: PageBoundary, tree: LineageTree, cuts: PageSelection) -> Markup:
    node = told.node
    boundary = node.boundary
    when = format_timestamp(find_source_time(boundary) or node.drawn_at)
    return make_tag(
        "details",
        make_tag(
            "summary",
            make_tag("span", f"compaction {told.compaction_number}", class_="handle"),
            f" {boundary.trigger}, {boundary.policy}, {when} ",
            make_tag("span", node.status, class_="fate"),
            make_tag("span", f" {node.sizes}".replace("->", "→"), class_="size"),
        ),
        make_tag("dl", *_render_facts(told, tree, cuts)),
        *_render_summary(told),
        *(_render_lost(told.diff, cuts) if told.diff else ()),
        id=make_boundary_id(told.key),
        class_="boundary",
    )


def _render_facts(told: PageBoundary, tree: LineageTree, cuts: PageSelection) -> Iterator[Markup]:
    node, boundary = told.node, told.node.boundary
    rows: list[tuple[str, object]] = [
        ("decided on all up to", f"#{boundary.after}"),
        ("served from", f"#{node.served_from}" if node.served_from is not None else "never"),
    ]
    if node.first_call is not None:
        first = make_tag("a", f"call {node.first_call}", href=f"#call-{node.first_call}")
        rows.append(("first call", first))
    rows += [(str(fate), render_handles(where, cuts)) for fate, where in told.statuses.items()]
    if node.new_blocks:
        rows.append(("took out", render_handles(node.new_blocks, cuts)))
    if node.inherited_blocks:
        rows.append(("takes over", render_handles(node.inherited_blocks, cuts)))
    if node.word_origins and len(node.word_origins) > 1:
        every = sum(node.word_origins.values())
        shares = (
            f"{said / every:.0%} from compaction {tree.find_compaction_number(at)}"
            for at, said in node.word_origins.items()
        )
        rows.append(("its words", ", ".join(shares)))
    for repair in boundary.repairs:
        rows.append(("repaired", repair.rule))
    for name, value in rows:
        yield make_tag("dt", name)
        yield make_tag("dd", value)


def _render_summary(told: PageBoundary) -> Iterator[Markup]:
    summary = told.node.summary
    if summary is None:
        yield make_tag("p", "No summary: nothing left, or a word for it was not wanted.")
        return
    by = f"{summary.summariser}{f' ({summary.model})' if summary.model else ''}"
    yield make_tag("h4", f"Summary, {summary.tokens:,} tokens, by {by}")
    yield make_tag("pre", summary.text, dir="auto", class_="said")


def _render_lost(diff: ViewDiff, cuts: PageSelection) -> Iterator[Markup]:
    shares = (f"{one.blocks:,} {one.kind} with {one.tokens:,} tokens" for one in diff.shares)
    yield make_tag("h4", "What left")
    yield make_tag("p", ", ".join(shares) or "nothing")
    if diff.lost_facts:
        yield make_tag("h4", f"{len(diff.lost_facts):,} facts are nowhere in the view any more")
        yield _fact_table(diff.lost_facts, cuts)
    if diff.gained_facts:
        yield make_tag("h4", f"{len(diff.gained_facts):,} facts were nowhere in the view before")
        yield _fact_table(diff.gained_facts, cuts)


def _fact_table(facts: Sequence[LostFact], cuts: PageSelection) -> Markup:
    kinds = Counter(str(fact.kind) for fact in facts)
    told = ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common())
    heads = (make_tag("th", name, scope="col") for name in ("fact", "kind", "recall", "later"))
    rows = [make_tag("tr", *heads)]
    for fact in facts[:_MAX_FACTS]:
        later: object = ""
        if fact.later_uses:
            later = join_markup(["used again at ", render_handles(fact.later_uses, cuts)])
        elif fact.repeated_at is not None:
            later = f"told again at #{fact.repeated_at}"
        mark = " (a user's words)" if fact.by_user else ""
        rows.append(
            make_tag(
                "tr",
                make_tag("td", make_tag("code", fact.text[:300], dir="auto"), mark),
                make_tag("td", fact.kind),
                make_tag("td", render_handles(fact.handles, cuts)),
                make_tag("td", later),
            )
        )
    more = len(facts) - _MAX_FACTS
    rest = make_tag("p", f"and {more:,} more: cutbank diff lists all") if more > 0 else ""
    return join_markup([make_tag("p", told), make_tag("table", *rows), rest])


def _render_attempts(tree: LineageTree) -> Iterator[Markup]:
    for attempt in tree.attempts:
        failed = isinstance(attempt.event, CompactionFailed)
        what = "A compaction failed" if failed else "A draft was rejected"
        yield make_tag("p", f"{what}: {attempt.event.reason}", class_="error")
