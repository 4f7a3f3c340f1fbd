"""Writes one self-contained page of a session: history, calls, boundaries and lost facts."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from ....domain.blocks import UNSENT_KINDS, Kind
from ....domain.compaction_events import CompactionFailed
from ....domain.models import ModelOverride
from ....domain.ranges import Ranges
from ....domain.session_events import ModelCalled
from ....domain.settlement import BlockStatus
from ....domain.token_estimate import SizeBasis
from ....projections.audit_entries import AuditedBlock, find_source_time
from ....projections.read_models.searchable_text import make_excerpt
from ....projections.read_models.timestamps import format_timestamp
from ....projections.view_diff import LINE_CHARS
from ...models.context_limits import make_overrides
from ...models.model_catalog import compute_call_cost
from ...runtime.exporting.new_file import open_new_path
from ...runtime.sessions.stored_session import StoredSession
from ...storage.private_files import open_new
from .session_chart import draw_context
from .session_story import PageBoundary, PageCall, PageStory, read_page_story
from .templates import format_plural, render_page

MAX_PAGE_CHARACTERS = 2_000_000
"""The limit for all blocks together; the HTML around them adds to it."""
MAX_PAGE_BLOCKS = 4_000
MAX_PAGE_CALLS = 1_000
_MAX_TITLE_CHARACTERS = 100
_MAX_RANGE_LINKS = 24


@dataclass(frozen=True)
class PageSelection:
    """What a page shows; of too much, the newest."""

    blocks: Sequence[AuditedBlock]
    calls: Sequence[PageCall]
    max_text_characters: int | None = None
    """Characters that each block may show; None is all."""
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


def select_content(story: PageStory, *, is_full: bool) -> PageSelection:
    """Select everything, or as much as makes a page of some megabytes."""
    if is_full:
        return PageSelection(story.blocks, story.calls)
    blocks, calls = story.blocks[-MAX_PAGE_BLOCKS:], story.calls[-MAX_PAGE_CALLS:]
    sizes = [len(one.block.text) for one in blocks]
    longest = _fit_length(sizes)
    omissions: list[str] = []
    if len(blocks) < len(story.blocks):
        omissions.append(f"the first {len(story.blocks) - len(blocks):,} blocks")
    if len(calls) < len(story.calls):
        omissions.append(f"the first {len(story.calls) - len(calls):,} calls")
    if longest is not None:
        cut = sum(size > longest for size in sizes)
        omissions.append(f"the middle of {cut:,} blocks longer than {longest:,} characters")
    return PageSelection(blocks, calls, longest, tuple(omissions))


def render_session_page(story: PageStory, selection: PageSelection) -> str:
    """Return the page as text; it loads nothing from elsewhere."""
    positions = [one.position for one in story.blocks]
    shown = {one.position for one in selection.blocks}

    def link_ranges(where: Ranges) -> tuple[list[tuple[str, int | None]], int]:
        """Return the names of ranges, each with its first shown block, and how many more are."""
        runs = to_block_numbers(where, positions)
        links = []
        for first, last in runs[:_MAX_RANGE_LINKS]:
            begin, end = positions[first], positions[last]
            among = islice(positions, first, last + 1)
            name = f"#{begin}" if begin == end else f"#{begin}-{end}"
            links.append((name, next((at for at in among if at in shown), None)))
        return links, len(runs) - len(links)

    return render_page(
        "session.html",
        story=story,
        cuts=selection,
        title=_find_title(story),
        facts=list(_list_facts(story)),
        used_again=_list_used_again(story),
        context=draw_context(story),
        marks=make_page_data(story, selection),
        link_ranges=link_ranges,
        find_whole=_find_whole,
        describe_status=_describe_status,
        shorten=lambda text: shorten_text(text, selection.max_text_characters),
        first_line=lambda text: make_excerpt(text, LINE_CHARS),
        when=lambda event: format_timestamp(find_source_time(event) or event.timestamp),
        timestamp=format_timestamp,
        count_kinds=lambda facts: Counter(str(fact.kind) for fact in facts).most_common(),
        ranges_of=Ranges.of,
        has_failed=lambda event: isinstance(event, CompactionFailed),
    )


def make_page_data(story: PageStory, selection: PageSelection) -> dict[str, Any]:
    """Return the data for the page's script: block statuses at each call and boundary."""
    positions = [one.position for one in selection.blocks]
    numbers = {key: number for number, key in enumerate(story.boundaries)}
    return {
        "calls": {
            call.number: [
                bisect_left(positions, call.last_seen_position + 1),
                numbers.get(call.boundary) if call.boundary else None,
                call.last_seen_position,
            ]
            for call in selection.calls
        },
        "boundaries": [
            {
                status.value: to_block_numbers(where, positions)
                for status, where in one.statuses.items()
                if status not in {BlockStatus.VISIBLE, BlockStatus.RETRACTED}
            }
            for one in story.boundaries.values()
        ],
        "retracted": [[at, to_block_numbers(gone, positions)] for at, gone in story.retractions],
    }


def to_block_numbers(positions: Ranges, every: Sequence[int]) -> list[tuple[int, int]]:
    """Convert ranges of positions to ranges of block numbers.

    Ranges without blocks are dropped, and those with no block between them are merged.
    """
    numbers = (
        (bisect_left(every, first), bisect_left(every, last + 1) - 1)
        for first, last in positions.runs
    )
    # Ranges merge neighbors, and their values start at 1.
    merged = Ranges((first + 1, last + 1) for first, last in numbers if first <= last)
    return [(first - 1, last - 1) for first, last in merged.runs]


def shorten_text(text: str, longest: int | None) -> tuple[str, int, str]:
    """Return the start of a text, the number of characters left out, and its end."""
    if longest is None or len(text) <= longest:
        return text, 0, ""
    tail = longest // 4
    return text[: longest - tail], len(text) - longest, text[len(text) - tail :]


def _fit_length(sizes: Sequence[int]) -> int | None:
    """Return the length that long blocks are cut to so that all fit; None if no cut is needed."""
    if sum(sizes) <= MAX_PAGE_CHARACTERS:
        return None
    lengths = range(max(sizes))
    fits = bisect_left(
        lengths,
        MAX_PAGE_CHARACTERS + 1,
        key=lambda length: sum(min(size, length) for size in sizes),
    )
    return max(fits - 1, 40)


def _find_title(story: PageStory) -> str:
    """Return the session's title, else the user's first message, else its key."""
    texts = (one.block.text for one in story.blocks if one.block.kind is Kind.USER)
    first = next((" ".join(text.split()) for text in texts if text.strip()), "")
    if len(first) > _MAX_TITLE_CHARACTERS:
        first = f"{first[: _MAX_TITLE_CHARACTERS - 1]}…"
    return story.session.log.title or first or story.session.key


def _list_facts(story: PageStory) -> Iterator[tuple[str, str]]:
    """Yield the name and value of each main fact that is known."""
    reports = [call.entry.reported for call in story.calls if call.entry.reported is not None]
    times = [one.time for one in story.blocks if one.time is not None]
    if times:
        first, last = _format_minute(min(times)), _format_minute(max(times))
        yield "Date", f"{first if first == last else f'{first} to {last}'} UTC"
    if story.session.log.project:
        yield "Project", story.session.log.project
    models = Counter(call.model for call in reports if call.model).most_common()
    if models:
        yield "Model", ", ".join(f"{name} ({format_plural(n, 'call')})" for name, n in models)
    if story.calls:
        yield "Prompts", _format_prompts(story.calls, reports)
        yield "Cost", _format_cost(reports, make_overrides(story.session.log.settings))


def _format_minute(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M}"


def _format_prompts(calls: Sequence[PageCall], reports: Sequence[ModelCalled]) -> str:
    parts = [
        f"{sum(numbers):,} tokens in {format_plural(len(numbers), 'call')}, {basis}"
        for basis in SizeBasis
        if (numbers := [call.tokens for call in calls if call.size.basis is basis])
    ]
    written = sum(call.usage.output or 0 for call in reports if call.usage)
    return "; ".join([*parts, *([f"{written:,} tokens written, reported"] if written else [])])


def _format_cost(reports: Sequence[ModelCalled], overrides: Mapping[str, ModelOverride]) -> str:
    """Return the cost in the log, else the cost by the model's prices on that day."""
    costs = [
        call.cost_usd
        if call.cost_usd or call.usage is None or call.model is None
        else compute_call_cost(call.model, call.usage, overrides, at=find_source_time(call))
        for call in reports
    ]
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
    return (visible & Ranges.span(1, first - 1)) | Ranges.span(first, call.last_seen_position)


def _describe_status(one: AuditedBlock) -> str:
    status = one.status.status
    if one.block.kind in UNSENT_KINDS and status is not BlockStatus.RETRACTED:
        return "never-sent"
    return str(status or "lost")
