"""The history of a session as HTML: each block with its fate, to be opened."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

from .....domain.blocks import NOT_SENT, Block, Media, NativePart, ToolCall, ToolResult
from .....domain.coverage import Fate
from .....domain.ranges import Ranges
from .....projections.diffing.view_diff import first_line
from .....projections.read_models.moments import moment
from .cuts import Cuts, shortened
from .markup import Markup, tag
from .story import ToldBlock

LINE = 110
RANGES = 24


def history(cuts: Cuts, session: str) -> Iterator[Markup]:
    """The blocks in order, under their turns."""
    turn = None
    for number, told in enumerate(cuts.blocks):
        if told.turn != turn:
            turn = told.turn
            yield tag("h3", f"Turn {turn}" if turn else "Before the first turn")
        yield _block(told, number, cuts, session)


def _block(told: ToldBlock, number: int, cuts: Cuts, session: str) -> Markup:
    block = told.block
    fate = str(told.fate) if told.fate else "lost"
    if block.kind in NOT_SENT and told.fate is not Fate.RETRACTED:
        fate = "never-sent"
    name = block.name if isinstance(block, Block | ToolCall) else None
    head, left_out, tail = shortened(block.text, cuts.longest)
    mark = (
        tag(
            "em",
            f"\n… {left_out:,} characters left out; cutbank recall {session} {told.position}"
            " gives all …\n",
        )
        if left_out
        else ""
    )
    return tag(
        "details",
        tag(
            "summary",
            tag("span", f"#{told.position}", class_="handle"),
            " ",
            tag("span", block.kind, f" {name}" if name else "", class_="kind"),
            tag("span", f" {told.tokens:,} tokens ", class_="size"),
            tag("span", fate.replace("-", " "), class_="fate"),
            tag("span", " error", class_="error") if getattr(block, "is_error", False) else "",
            " ",
            tag("span", first_line(block.text)[:LINE], class_="line"),
        ),
        tag("p", moment(told.when), class_="when") if told.when else "",
        tag("pre", head, mark, tail, dir="auto"),
        *(tag("p", line, class_="media") for line in _media(told)),
        id=f"block-{told.position}",
        class_=f"block fate-{fate}",
        data_number=number,
        data_position=told.position,
        data_fate=fate,
    )


def _media(told: ToldBlock) -> Iterator[str]:
    """A line about each image, document and item that is no text."""
    block = told.block
    if isinstance(block, Block) and block.media is not None:
        yield _described(block.media)
    if isinstance(block, ToolResult) and not isinstance(block.content, str):
        for part in block.content:
            if isinstance(part, Media):
                yield _described(part)
            elif isinstance(part, NativePart):
                yield f"[{part.native.provider} item, {len(part.native.item):,} characters]"


def _described(media: Media) -> str:
    where = f", at {media.url}" if media.url else ""
    return f"[{media.type} {media.mime}, {len(media.data):,} bytes{where}]"


def handles(positions: Ranges, cuts: Cuts) -> Markup:
    """The blocks at these positions as ranges, each with a link to its first that is shown.

    What no block stands between is one range, whatever else the log holds there.
    """
    runs = numbered(positions, cuts.positions)
    parts: list[object] = []
    for first, last in runs[:RANGES]:
        begin, end = cuts.positions[first], cuts.positions[last]
        name = f"#{begin}" if begin == end else f"#{begin}-{end}"
        among = islice(cuts.positions, first, last + 1)
        target = next((at for at in among if at in cuts.shown), None)
        parts += [tag("a", name, href=f"#block-{target}") if target else name, " "]
    more = len(runs) - RANGES
    if more > 0:
        parts.append(f"and {more:,} more ranges")
    return tag("span", *parts, class_="handles")


def numbered(positions: Ranges, every: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of positions as ranges of the blocks' own numbers; those without a block are none."""
    numbers = (
        (bisect_left(every, first), bisect_left(every, last + 1) - 1)
        for first, last in positions.runs
    )
    # Ranges merge what touches, and hold nothing below 1.
    merged = Ranges((first + 1, last + 1) for first, last in numbers if first <= last)
    return [(first - 1, last - 1) for first, last in merged.runs]
