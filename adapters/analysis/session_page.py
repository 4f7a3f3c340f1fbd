"""Writes one self-contained page of a session: history, calls, boundaries and lost facts."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from ...domain.blocks import UNSENT_KINDS, BlockKind
from ...domain.compaction import MAIN_LINEAGE
from ...domain.compaction_events import CompactionFailed
from ...domain.ranges import Ranges
from ...domain.settlement import BlockStatus
from ...domain.token_estimate import SizeBasis
from ...projections.audit_entries import AuditedBlock, AuditedCall, find_source_time
from ...projections.block_statuses import compute_status_ranges
from ...projections.history_view import HistoryView
from ...projections.lineage_tree import BoundaryNode, LineageTree
from ...projections.search_texts import make_excerpt
from ...projections.timestamps import format_timestamp
from ...projections.view_diff import LINE_CHARS, ViewDiff
from ..models.context_limits import make_overrides
from ..models.model_catalog import compute_call_cost
from ..runtime.sessions.stored_session import StoredSession
from ..storage.private_files import open_new, open_new_path
from .audit import Audit, list_session_lineages, read_lineage_trees
from .diffs import diff, read_fact_log
from .page_templates import format_plural, render_page

MAX_PAGE_CHARACTERS = 2_000_000
"""The limit for all blocks together; the HTML around them adds to it."""
MAX_PAGE_BLOCKS = 4_000
MAX_PAGE_CALLS = 1_000
_MAX_TITLE_CHARACTERS = 100
_MAX_RANGE_LINKS = 24
MAX_COMPARED_BOUNDARIES = 60
"""The number of boundaries of a lineage that are compared; of more, the newest."""

BoundaryKey = tuple[str, int]
"""A boundary: the lineage that it was decided in, and its number."""


@dataclass(frozen=True, slots=True)
class PageCall:
    """A call of the model, and the view that it was sent."""

    entry: AuditedCall
    summary_tokens: int
    boundary: BoundaryKey | None
    """The boundary that the view starts at; None if the view was all of the log."""


@dataclass(frozen=True, slots=True)
class PageBoundary:
    """A boundary, what it removed, and the block statuses that it caused."""

    lineage: str
    node: BoundaryNode
    diff: ViewDiff | None
    """None if there were too many boundaries to compare all."""
    statuses: Mapping[BlockStatus, Ranges]
    compaction_number: int
    """The number of the compaction on its lineage, from 1 on."""

    @property
    def name(self) -> str:
        return f"compaction {self.compaction_number} on {self.lineage}"

    @property
    def html_id(self) -> str:
        """The id for links; a lineage's name may hold any character."""
        return f"boundary-{self.lineage.encode('utf-8', 'surrogatepass').hex()}-{self.node.number}"


@dataclass(frozen=True)
class PageStory:
    """The content of a page."""

    session: StoredSession
    view: HistoryView
    """The newest view, on the page's lineage."""
    blocks: Sequence[AuditedBlock]
    calls: Sequence[PageCall]
    trees: Sequence[LineageTree]
    boundaries: Mapping[BoundaryKey, PageBoundary]


@dataclass(frozen=True)
class PageSelection:
    """What a page shows; of too much, the newest."""

    blocks: Sequence[AuditedBlock]
    calls: Sequence[PageCall]
    omissions: tuple[str, ...] = ()
    """Descriptions of what is not on the page."""


def write_page(
    session: StoredSession, path: str | Path, *, lineage: str | None = None, is_full: bool = False
) -> None:
    """Write a new file that any browser shows without a network.

    Block statuses are those of `lineage`, by default `main`. The page leaves out, and lists, what
    would make it too large, unless `is_full`. Raises ExportError if the file exists or cannot be
    written, NotFoundError if the lineage does not exist.
    """
    if lineage is not None:
        session.log.check_lineage(lineage)
    with open_new_path(Path(path)) as beside:
        story = read_page_story(session, lineage)
        content = render_session_page(story, select_content(story, is_full=is_full))
        with open_new(beside) as file:
            file.write(content.encode("utf-8"))


def read_page_story(session: StoredSession, lineage: str | None = None) -> PageStory:
    """Read the content of a page; statuses are those of `lineage`, by default `main`."""
    known = list_session_lineages(session)
    about = lineage or MAIN_LINEAGE
    # Where main has no compactions, use those that the source recorded.
    names = list(dict.fromkeys([*known, about])) if lineage or not known else known
    trees = read_lineage_trees(session, names)
    audit = Audit(session, about)
    entries = list(audit.read_between())
    retractions = [(one.originator_version, one.positions) for one in audit.retractions]
    nodes = {(tree.lineage, node.number): node for tree in trees for node in tree.nodes}
    return PageStory(
        session=session,
        view=session.view(lineage=about),
        blocks=[one for one in entries if isinstance(one, AuditedBlock)],
        calls=[_make_call(one, nodes) for one in entries if isinstance(one, AuditedCall)],
        trees=[tree for tree in trees if tree.nodes or tree.attempts],
        boundaries={
            (one.lineage, one.node.number): one
            for one in _read_boundaries(session, trees, retractions)
        },
    )


def _make_call(entry: AuditedCall, nodes: Mapping[BoundaryKey, BoundaryNode]) -> PageCall:
    number = entry.shown.boundary
    node = nodes.get((entry.lineage, number)) if number else None
    return PageCall(
        entry,
        summary_tokens=node.summary.tokens if node and node.summary else 0,
        boundary=(node.lineage if node else entry.lineage, number) if number else None,
    )


def _read_boundaries(
    session: StoredSession,
    trees: Sequence[LineageTree],
    retractions: Sequence[tuple[int, Ranges]],
) -> Iterator[PageBoundary]:
    log = read_fact_log(session)
    numbered = (
        (tree, count, node) for tree in trees for count, node in enumerate(tree.nodes, start=1)
    )
    for tree, count, node in numbered:
        if node.lineage != tree.lineage and node.lineage in session.log.lineages:
            continue  # it is shown in the lineage that decided it
        upto = node.served_from or node.boundary.after
        retracted = Ranges(run for at, gone in retractions if at <= upto for run in gone.runs)
        is_compared = count > len(tree.nodes) - MAX_COMPARED_BOUNDARIES
        yield PageBoundary(
            lineage=node.lineage,
            node=node,
            diff=diff(session, node.number, lineage=tree.lineage, log=log) if is_compared else None,
            statuses=compute_status_ranges(node.boundary, node.summary, retracted, upto),
            compaction_number=count,
        )


def select_content(story: PageStory, *, is_full: bool) -> PageSelection:
    """Select everything, or as much as makes a page of some megabytes."""
    if is_full:
        return PageSelection(story.blocks, story.calls)
    calls = story.calls[-MAX_PAGE_CALLS:]
    room, shown = MAX_PAGE_CHARACTERS, 0
    for one in reversed(story.blocks[-MAX_PAGE_BLOCKS:]):
        room -= len(one.block.text)
        if room < 0 and shown:
            break
        shown += 1
    omissions = [
        f"the first {left_out:,} {things}"
        for things, left_out in (
            ("blocks", len(story.blocks) - shown),
            ("calls", len(story.calls) - len(calls)),
        )
        if left_out
    ]
    return PageSelection(story.blocks[len(story.blocks) - shown :], calls, tuple(omissions))


def render_session_page(story: PageStory, selection: PageSelection) -> str:
    """Return the page as text; it loads nothing from elsewhere."""
    positions = [one.position for one in story.blocks]
    shown = {one.position for one in selection.blocks}

    def link_ranges(where: Ranges) -> tuple[list[tuple[str, int | None]], int]:
        """Return the names of ranges, each with its first shown block, and how many more are."""
        runs = split_by_runs(positions, where)
        links = []
        for run in runs[:_MAX_RANGE_LINKS]:
            name = f"#{run[0]}" if len(run) == 1 else f"#{run[0]}-{run[-1]}"
            links.append((name, next((at for at in run if at in shown), None)))
        return links, len(runs) - len(links)

    return render_page(
        "session.html",
        story=story,
        cuts=selection,
        title=_find_title(story),
        facts=list(_list_facts(story)),
        used_again=_list_used_again(story),
        link_ranges=link_ranges,
        describe_status=_describe_status,
        find_whole=_find_whole,
        first_line=lambda text: make_excerpt(text, LINE_CHARS),
        when=lambda event: format_timestamp(find_source_time(event) or event.timestamp),
        timestamp=format_timestamp,
        count_kinds=lambda facts: Counter(str(fact.kind) for fact in facts).most_common(),
        ranges_of=Ranges.of,
        has_failed=lambda event: isinstance(event, CompactionFailed),
    )


def split_by_runs(positions: Sequence[int], where: Ranges) -> list[Sequence[int]]:
    """Return the positions in each run; runs with none of the positions between them are one."""
    spans: list[tuple[int, int]] = []
    for first, last in where.runs:
        begin, end = bisect_left(positions, first), bisect_right(positions, last)
        if begin < end and spans and spans[-1][1] == begin:
            spans[-1] = spans[-1][0], end
        elif begin < end:
            spans.append((begin, end))
    return [positions[begin:end] for begin, end in spans]


def _find_title(story: PageStory) -> str:
    """Return the session's title, else the user's first message, else its key."""
    texts = (one.block.text for one in story.blocks if one.block.kind is BlockKind.USER)
    first = next((" ".join(text.split()) for text in texts if text.strip()), "")
    if len(first) > _MAX_TITLE_CHARACTERS:
        first = f"{first[: _MAX_TITLE_CHARACTERS - 1]}…"
    return story.session.info.title or first or story.session.key


def _list_facts(story: PageStory) -> Iterator[tuple[str, str]]:
    """Yield the name and value of each main fact that is known."""
    times = [f"{one.time.astimezone(UTC):%Y-%m-%d %H:%M}" for one in story.blocks if one.time]
    if times:
        first, last = min(times), max(times)
        yield "Date", f"{first if first == last else f'{first} to {last}'} UTC"
    if story.session.info.project:
        yield "Project", story.session.info.project
    reports = [call.entry.reported for call in story.calls if call.entry.reported is not None]
    models = Counter(call.model for call in reports if call.model).most_common()
    if models:
        yield "Model", ", ".join(f"{name} ({format_plural(n, 'call')})" for name, n in models)
    if not story.calls:
        return
    sizes = [call.entry.size for call in story.calls]
    prompts = [
        f"{sum(numbers):,} tokens in {format_plural(len(numbers), 'call')}, {basis}"
        for basis in SizeBasis
        if (numbers := [size.tokens for size in sizes if size.basis is basis])
    ]
    if written := sum(call.usage.output or 0 for call in reports if call.usage):
        prompts.append(f"{written:,} tokens written, reported")
    yield "Prompts", "; ".join(prompts)
    # The cost in the log, else the cost by the model's prices on that day.
    overrides = make_overrides(story.session.log.settings)
    costs = [
        call.cost_usd
        if call.cost_usd or call.usage is None or call.model is None
        else compute_call_cost(call.model, call.usage, overrides, at=find_source_time(call))
        for call in reports
    ]
    yield "Cost", _format_cost(costs)


def _format_cost(costs: Sequence[float | None]) -> str:
    known = [cost for cost in costs if cost is not None]
    if not known:
        return "not known: the log tells neither costs nor tokens of models with known prices"
    without = format_plural(len(costs) - len(known), "call")
    rest = f", without {without} of unknown cost" if len(known) < len(costs) else ""
    return f"${sum(known):,.2f}{rest}"


def _list_used_again(story: PageStory) -> tuple[int, list[str]]:
    """Return the number of facts that left at boundaries, and those that were used again later."""
    lost = {
        (fact.kind, fact.text): fact
        for one in story.boundaries.values()
        if one.diff is not None
        for fact in one.diff.lost_facts
    }
    return len(lost), [fact.text for fact in lost.values() if fact.later_uses]


def _find_whole(call: PageCall, boundary: PageBoundary | None) -> Ranges:
    """Return the positions that a call saw whole."""
    visible = boundary.statuses.get(BlockStatus.VISIBLE, Ranges()) if boundary else Ranges()
    first = boundary.node.boundary.after + 1 if boundary else 1
    seen = call.entry.last_seen_position
    return (visible & Ranges.span(1, first - 1)) | Ranges.span(first, seen)


def _describe_status(one: AuditedBlock) -> str:
    status = one.status.status
    if one.block.kind in UNSENT_KINDS and status is not BlockStatus.RETRACTED:
        return "never-sent"
    return str(status or "lost")
