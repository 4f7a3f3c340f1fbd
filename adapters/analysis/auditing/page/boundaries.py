"""The boundaries of a session as HTML: what each took out, what stands for it, what was lost."""

from collections import Counter
from collections.abc import Iterator, Sequence

from .....domain.compaction_events import CompactionFailed
from .....projections.diffing.lost_facts import LostFact
from .....projections.diffing.view_diff import ViewDiff
from .....projections.lineage_tree import LineageTree
from .....projections.read_models.moments import moment
from ..told_times import told_at
from .chart import boundary_id
from .cuts import Cuts
from .history import handles
from .markup import Markup, joined, several, tag
from .story import Story, ToldBoundary

FACTS = 40
LISTED = 60


def boundaries(story: Story, cuts: Cuts) -> Iterator[Markup]:
    """Each lineage, and its boundaries in the order in which they were drawn."""
    told = {one.key: one for one in story.boundaries}
    for tree in story.trees:
        served = f"compaction {tree.count(tree.served)}" if tree.served else "all of the log"
        went_on = f", continues {tree.continues}" if tree.continues else ""
        yield tag("h3", f"Lineage {tree.lineage}")
        yield tag(
            "p",
            f"{several(len(tree.nodes), 'compaction', 'compactions')}, {served} is served{went_on}",
        )
        for node in tree.nodes:
            one = told.get((node.lineage, node.number))
            if one is not None and node.lineage != tree.lineage:
                name = f"compaction {tree.count(node.number)}, decided in {node.lineage}"
                yield tag("p", tag("a", name, href=f"#{boundary_id(one.key)}"))
            elif one is not None:
                yield _boundary(one, tree, cuts)
        yield from _attempts(tree)


def _boundary(told: ToldBoundary, tree: LineageTree, cuts: Cuts) -> Markup:
    node = told.node
    boundary = node.boundary
    when = moment(told_at(boundary) or node.when)
    return tag(
        "details",
        tag(
            "summary",
            tag("span", f"compaction {told.compaction}", class_="handle"),
            f" {boundary.trigger}, {boundary.policy}, {when} ",
            tag("span", node.standing, class_="fate"),
            tag("span", f" {node.sizes}".replace("->", "→"), class_="size"),
        ),
        tag("dl", *_facts(told, tree, cuts)),
        *_summary(told),
        *(_lost(told.diff, cuts) if told.diff else ()),
        id=boundary_id(told.key),
        class_="boundary",
    )


def _facts(told: ToldBoundary, tree: LineageTree, cuts: Cuts) -> Iterator[Markup]:
    node, boundary = told.node, told.node.boundary
    rows: list[tuple[str, object]] = [
        ("decided on all up to", f"#{boundary.after}"),
        ("served from", f"#{node.served_from}" if node.served_from is not None else "never"),
    ]
    if node.first_call is not None:
        first = tag("a", f"call {node.first_call}", href=f"#call-{node.first_call}")
        rows.append(("first call", first))
    rows += [(str(fate), handles(where, cuts)) for fate, where in told.fates.items()]
    if node.new:
        rows.append(("took out", handles(node.new, cuts)))
    if node.inherited:
        rows.append(("takes over", handles(node.inherited, cuts)))
    if node.words and len(node.words) > 1:
        every = sum(node.words.values())
        shares = (
            f"{said / every:.0%} from compaction {tree.count(at)}"
            for at, said in node.words.items()
        )
        rows.append(("its words", ", ".join(shares)))
    for repair in boundary.repairs:
        rows.append(("repaired", repair.rule))
    for name, value in rows:
        yield tag("dt", name)
        yield tag("dd", value)


def _summary(told: ToldBoundary) -> Iterator[Markup]:
    summary = told.node.summary
    if summary is None:
        yield tag("p", "No summary: nothing left, or a word for it was not wanted.")
        return
    by = f"{summary.summariser}{f' ({summary.model})' if summary.model else ''}"
    yield tag("h4", f"Summary, {summary.tokens:,} tokens, by {by}")
    yield tag("pre", summary.text, dir="auto", class_="said")


def _lost(diff: ViewDiff, cuts: Cuts) -> Iterator[Markup]:
    shares = (f"{one.blocks:,} {one.kind} with {one.tokens:,} tokens" for one in diff.shares)
    yield tag("h4", "What left")
    yield tag("p", ", ".join(shares) or "nothing")
    if diff.lost:
        yield tag("h4", f"{len(diff.lost):,} facts are nowhere in the view any more")
        yield _fact_table(diff.lost, cuts)
    if diff.gained:
        yield tag("h4", f"{len(diff.gained):,} facts were nowhere in the view before")
        yield _fact_table(diff.gained, cuts)


def _fact_table(facts: Sequence[LostFact], cuts: Cuts) -> Markup:
    kinds = Counter(str(fact.kind) for fact in facts)
    told = ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common())
    heads = (tag("th", name, scope="col") for name in ("fact", "kind", "recall", "later"))
    rows = [tag("tr", *heads)]
    for fact in facts[:FACTS]:
        later: object = ""
        if fact.used_again:
            later = joined(["used again at ", handles(fact.used_again, cuts)])
        elif fact.told_again is not None:
            later = f"told again at #{fact.told_again}"
        mark = " (a user's words)" if fact.by_user else ""
        rows.append(
            tag(
                "tr",
                tag("td", tag("code", fact.text[:300], dir="auto"), mark),
                tag("td", fact.kind),
                tag("td", handles(fact.handles, cuts)),
                tag("td", later),
            )
        )
    more = len(facts) - FACTS
    rest = tag("p", f"and {more:,} more: cutbank diff lists all") if more > 0 else ""
    return joined([tag("p", told), tag("table", *rows), rest])


def _attempts(tree: LineageTree) -> Iterator[Markup]:
    for attempt in tree.attempts:
        failed = isinstance(attempt.event, CompactionFailed)
        what = "A compaction failed" if failed else "A draft was rejected"
        yield tag("p", f"{what}: {attempt.event.reason}", class_="error")
