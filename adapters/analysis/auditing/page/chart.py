"""Draws context usage per call and the status of blocks as inline SVG."""

from collections.abc import Iterator, Sequence

from .....domain.ranges import Ranges
from .....domain.settlement import BlockStatus
from .....domain.token_estimate import SizeBasis
from .markup import Markup, make_tag
from .page_story import PageBoundary, PageCall, PageStory

_HEIGHT = 220
_SPACE_ABOVE, _SPACE_BELOW = 14, 24
"""Room for text above and below the bars."""
MOST_NUMBERS = 12
"""The number of compactions whose numbers fit above their lines on a phone."""
MOST_BARS = 500
MOST_STRIPES = 24
STRIPE_HEIGHT = 14
_MAX_CELLS = 500


def render_context_chart(story: PageStory) -> Markup:
    """Draw a bar for each call, as high as its prompt; of many calls, the highest of each group."""
    calls = story.calls
    if not calls:
        return make_tag("p", "The log tells of no call of a model.")
    top = max(1, *(call.tokens for call in calls))
    reported = sum(call.size.basis is SizeBasis.REPORTED for call in calls)
    label = (
        f"Tokens of the prompts of {len(calls):,} calls, {reported:,} of them reported;"
        f" the largest has {top:,}"
    )
    drawing = _render_svg(
        *_render_scale(top),
        *_render_bars(story, top),
        make_tag("text", "call 1", x=0, y=_HEIGHT - 6),
        make_tag("text", f"call {len(calls)}", x="100%", y=_HEIGHT - 6, text_anchor="end"),
        high=_HEIGHT,
        label=label,
    )
    met = {
        "reported": ("prompt, reported by the provider", reported > 0),
        "estimated": ("prompt, estimated", reported < len(calls)),
        "summary": ("the summary in it, estimated", any(call.summary_tokens for call in calls)),
        "boundary": ("compaction", any(call.boundary for call in calls)),
    }
    named = [(f"bar-{kind}", words) for kind, (words, is_met) in met.items() if is_met]
    return _add_legend("The prompt of each call", drawing, named, "Marks of the calls")


def _add_legend(
    title: str, drawing: Markup, named: Sequence[tuple[str, str]], label: str
) -> Markup:
    swatches = (make_tag("span", words, class_=f"swatch {name}") for name, words in named)
    legend = make_tag("p", *swatches, class_="legend", aria_label=label)
    return make_tag("figure", make_tag("figcaption", title), drawing, legend)


def _render_svg(*parts: Markup, high: int, label: str) -> Markup:
    """Render a drawing as wide as its page; horizontal values are percentages."""
    return make_tag("svg", *parts, height=high, class_="chart", role="group", aria_label=label)


def _render_scale(top: int) -> Iterator[Markup]:
    for part in (0.5, 1.0):
        y = _to_height(top * part, top)
        yield make_tag("line", x1=0, x2="100%", y1=y, y2=y, class_="scale")
        yield make_tag("text", f"{round(top * part):,}", x=-6, y=y + 4, text_anchor="end")


def _render_bars(story: PageStory, top: int) -> Iterator[Markup]:
    binned = list(_bin_calls(story.calls))
    wide = 100 / len(binned)
    begun = [
        (number, group[-1])
        for number, (before, group) in enumerate(zip([(), *binned], binned, strict=False))
        if group[-1].boundary is not None
        and group[-1].boundary != (before[-1].boundary if before else None)
    ]
    for number, group in enumerate(binned):
        tallest = max(group, key=lambda call: call.tokens)
        x = number * wide
        high, summary = _to_height(tallest.tokens, top), _to_height(tallest.summary_tokens, top)
        floor = _HEIGHT - _SPACE_BELOW
        yield make_tag(
            "a",
            make_tag("title", f"call {tallest.call.number}: {tallest.size}"),
            _render_bar(x, wide, high, floor, tallest.size.basis),
            _render_bar(x, wide, summary, floor, "summary") if tallest.summary_tokens else "",
            href=f"#call-{tallest.call.number}",
            class_="bar",
            data_call=tallest.call.number,
        )
    for number, call in begun:
        is_numbered = len(begun) <= MOST_NUMBERS
        yield _render_mark(number * wide, call, story.find_boundary(call), is_numbered=is_numbered)


def _render_bar(x: float, wide: float, high: float, floor: float, kind: str) -> Markup:
    return make_tag(
        "rect",
        x=_format_percent(x),
        y=_format_number(high),
        width=_format_percent(wide * 0.9),
        height=_format_number(floor - high),
        class_=f"bar-{kind}",
    )


def _render_mark(
    x: float, call: PageCall, told: PageBoundary | None, *, is_numbered: bool
) -> Markup:
    at = _format_percent(x)
    line = make_tag("line", x1=at, x2=at, y1=0, y2=_HEIGHT - _SPACE_BELOW, class_="boundary")
    compaction = told.name if told else "a compaction"
    title = make_tag("title", f"{compaction}, from call {call.call.number} on")
    # Place the label on the side of its line that has room.
    side = {"dx": 4} if x < 50 else {"dx": -4, "text_anchor": "end"}
    name = (
        make_tag("text", told.compaction_number, x=at, y=10, **side) if told and is_numbered else ""
    )
    if told is None:
        return make_tag("g", title, line, name)
    return make_tag("a", title, line, name, href=f"#{make_boundary_id(story_key=told.key)}")


def make_boundary_id(story_key: tuple[str, int]) -> str:
    """Return the id of a boundary for links; a lineage's name may hold any character."""
    lineage, number = story_key
    return f"boundary-{lineage.encode('utf-8', 'surrogatepass').hex()}-{number}"


def render_status_chart(story: PageStory) -> Markup:
    """Draw a stripe for each boundary, as long as the log was then, and one for now: block
    statuses.
    """
    positions = [told.position for told in story.blocks]
    if not positions:
        return make_tag("p", "The log holds no block.")
    served = [told for told in story.boundaries if told.node.served_from is not None]
    newest = sorted(served, key=lambda told: told.last_position)[-MOST_STRIPES:]
    lineages = sorted({told.lineage for told in newest})
    rows: list[Markup] = []
    for lineage in lineages:
        if len(lineages) > 1:
            rows.append(_render_label(len(rows), f"lineage {lineage}"))
        stripes = (told for told in newest if told.lineage == lineage)
        rows += [
            _render_stripe(number, told, positions)
            for number, told in enumerate(stripes, len(rows))
        ]
    if len(lineages) > 1:
        rows.append(_render_label(len(rows), f"lineage {story.view.coordinate.lineage}"))
    rows.append(_render_current(story, len(rows)))
    high = (len(rows)) * (STRIPE_HEIGHT + 4) + 4
    label = "What had become of each block of the log, at each compaction and now"
    met = {told.status for told in story.blocks}.union(*(one.statuses for one in story.boundaries))
    named = [(f"fate-{fate}", str(fate)) for fate in BlockStatus if fate in met]
    drawing = _render_svg(*rows, high=high, label=label)
    return _add_legend("What became of the log", drawing, named, "Colours of the fates")


def _render_label(number: int, name: str) -> Markup:
    return make_tag("text", name, x=0, y=_row_offset(number) + 11)


def _render_stripe(number: int, told: PageBoundary, positions: Sequence[int]) -> Markup:
    fates = {
        position: fate
        for fate, where in told.statuses.items()
        for position in _select_positions(positions, where)
    }
    label = make_tag(
        "text", f"#{told.last_position}", x=-6, y=_row_offset(number) + 11, text_anchor="end"
    )
    title = make_tag("title", f"{told.name}, at #{told.last_position}")
    cells = _render_cells([fates.get(position) for position in positions], number)
    return make_tag("a", title, label, *cells, href=f"#{make_boundary_id(told.key)}")


def _render_current(story: PageStory, number: int) -> Markup:
    label = make_tag("text", "now", x=-6, y=_row_offset(number) + 11, text_anchor="end")
    cells = _render_cells([told.status for told in story.blocks], number)
    return make_tag("g", label, *cells)


def _render_cells(fates: Sequence[BlockStatus | None], number: int) -> Iterator[Markup]:
    """Yield runs of blocks with one status; of many blocks, the most common of each group."""
    each = max(1, -(-len(fates) // _MAX_CELLS))
    seen = [_most_common(fates[at : at + each]) for at in range(0, len(fates), each)]
    wide = 100 / len(seen)
    begins = 0
    for at in range(1, len(seen) + 1):
        if at == len(seen) or seen[at] != seen[begins]:
            fate = seen[begins]
            if fate is not None:
                x, width = begins * wide, (at - begins) * wide
                yield make_tag(
                    "rect",
                    make_tag("title", str(fate)),
                    x=_format_percent(x),
                    y=_row_offset(number),
                    width=_format_percent(width),
                    height=STRIPE_HEIGHT,
                    class_=f"fate-{fate}",
                )
            begins = at


def _most_common(fates: Sequence[BlockStatus | None]) -> BlockStatus | None:
    return max(fates, key=fates.count)


def _select_positions(positions: Sequence[int], where: Ranges) -> Iterator[int]:
    return (position for position in positions if position in where)


def _bin_calls(calls: Sequence[PageCall]) -> Iterator[Sequence[PageCall]]:
    each = max(1, -(-len(calls) // MOST_BARS))
    return (calls[at : at + each] for at in range(0, len(calls), each))


def _row_offset(number: int) -> int:
    return 2 + number * (STRIPE_HEIGHT + 4)


def _to_height(tokens: float, top: int) -> float:
    high = _HEIGHT - _SPACE_BELOW - _SPACE_ABOVE
    return _SPACE_ABOVE + high * (1 - tokens / top)


def _format_number(value: float) -> str:
    return f"{value:.1f}"


def _format_percent(value: float) -> str:
    return f"{value:.2f}%"
