"""Renders the history of a session as HTML: each block with its status."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

from .....domain.blocks import UNSENT_KINDS, Block, Media, NativePart, ToolCall, ToolResult
from .....domain.ranges import Ranges
from .....domain.settlement import BlockStatus
from .....projections.diffing.view_diff import make_first_line
from .....projections.read_models.timestamps import format_timestamp
from .markup import Markup, make_tag
from .page_selection import PageSelection, shorten_text
from .page_story import PageBlock

_LINE_CHARACTERS = 110
MAX_RANGE_LINKS = 24


def render_history(cuts: PageSelection, session: str) -> Iterator[Markup]:
    """Yield the blocks in order, grouped by turn."""
    turn = None
    for number, told in enumerate(cuts.blocks):
        if told.turn != turn:
            turn = told.turn
            yield make_tag("h3", f"Turn {turn}" if turn else "Before the first turn")
        yield _render_block(told, number, cuts, session)


def _render_block(told: PageBlock, number: int, cuts: PageSelection, session: str) -> Markup:
    block = told.block
    fate = str(told.status) if told.status else "lost"
    if block.kind in UNSENT_KINDS and told.status is not BlockStatus.RETRACTED:
        fate = "never-sent"
    name = block.name if isinstance(block, Block | ToolCall) else None
    head, left_out, tail = shorten_text(block.text, cuts.max_text_characters)
    mark = (
        make_tag(
            "em",
            f"\n… {left_out:,} characters left out; cutbank recall {session} {told.position}"
            " gives all …\n",
        )
        if left_out
        else ""
    )
    return make_tag(
        "details",
        make_tag(
            "summary",
            make_tag("span", f"#{told.position}", class_="handle"),
            " ",
            make_tag("span", block.kind, f" {name}" if name else "", class_="kind"),
            make_tag("span", f" {told.tokens:,} tokens ", class_="size"),
            make_tag("span", fate.replace("-", " "), class_="fate"),
            make_tag("span", " error", class_="error") if getattr(block, "is_error", False) else "",
            " ",
            make_tag("span", make_first_line(block.text)[:_LINE_CHARACTERS], class_="line"),
        ),
        make_tag("p", format_timestamp(told.when), class_="when") if told.when else "",
        make_tag("pre", head, mark, tail, dir="auto"),
        *(make_tag("p", line, class_="media") for line in _media_lines(told)),
        id=f"block-{told.position}",
        class_=f"block fate-{fate}",
        data_number=number,
        data_position=told.position,
        data_fate=fate,
    )


def _media_lines(told: PageBlock) -> Iterator[str]:
    """Yield a line for each image, document and other item that is not text."""
    block = told.block
    if isinstance(block, Block) and block.media is not None:
        yield _describe_media(block.media)
    if isinstance(block, ToolResult) and not isinstance(block.content, str):
        for part in block.content:
            if isinstance(part, Media):
                yield _describe_media(part)
            elif isinstance(part, NativePart):
                yield f"[{part.native.provider} item, {len(part.native.item):,} characters]"


def _describe_media(media: Media) -> str:
    where = f", at {media.url}" if media.url else ""
    return f"[{media.type} {media.mime}, {len(media.data):,} bytes{where}]"


def render_handles(positions: Ranges, cuts: PageSelection) -> Markup:
    """Render the blocks at these positions as ranges, each linked to its first shown block.

    Ranges with no block between them are merged, whatever else the log holds there.
    """
    runs = to_block_numbers(positions, cuts.positions)
    parts: list[object] = []
    for first, last in runs[:MAX_RANGE_LINKS]:
        begin, end = cuts.positions[first], cuts.positions[last]
        name = f"#{begin}" if begin == end else f"#{begin}-{end}"
        among = islice(cuts.positions, first, last + 1)
        target = next((at for at in among if at in cuts.shown_positions), None)
        parts += [make_tag("a", name, href=f"#block-{target}") if target else name, " "]
    more = len(runs) - MAX_RANGE_LINKS
    if more > 0:
        parts.append(f"and {more:,} more ranges")
    return make_tag("span", *parts, class_="handles")


def to_block_numbers(positions: Ranges, every: Sequence[int]) -> list[tuple[int, int]]:
    """Convert ranges of positions to ranges of block numbers; drop ranges without blocks."""
    numbers = (
        (bisect_left(every, first), bisect_left(every, last + 1) - 1)
        for first, last in positions.runs
    )
    # Ranges merge neighbors, and their values start at 1.
    merged = Ranges((first + 1, last + 1) for first, last in numbers if first <= last)
    return [(first - 1, last - 1) for first, last in merged.runs]
