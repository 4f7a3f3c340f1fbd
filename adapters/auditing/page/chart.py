"""Draws how much of the context each call took, and what became of the log, as inline SVG."""

from collections.abc import Iterator, Sequence

from ....domain.coverage import Fate
from ....domain.ranges import Ranges
from .markup import Markup, tag
from .story import Story, ToldBoundary, ToldCall

WIDTH, HEIGHT = 1_000, 220
LEFT, BELOW = 64, 24
"""Room for what is written beside the bars and below them."""
MOST_BARS = 500
MOST_STRIPES = 24
STRIPE = 14
COLUMNS = 500


def context_chart(story: Story) -> Markup:
    """A bar a call, as high as its prompt; of very many calls the highest of each few."""
    calls = story.calls
    if not calls:
        return tag("p", "The log tells of no call of a model.")
    top = max(1, *(call.tokens for call in calls))
    bars = [*_bars(story, top)]
    label = f"Estimated tokens of {len(calls):,} calls; the largest prompt has {top:,}"
    return _drawn(
        *_scale(top),
        *bars,
        tag("text", "call 1", x=LEFT, y=HEIGHT - 6),
        tag("text", f"call {len(calls)}", x=WIDTH, y=HEIGHT - 6, text_anchor="end"),
        high=HEIGHT,
        label=label,
    )


def _drawn(*parts: Markup, high: int, label: str) -> Markup:
    """A drawing as wide as the page, and where that is narrow, to be moved sideways."""
    size = f"0 0 {WIDTH} {high}"
    drawing = tag("svg", *parts, viewBox=size, class_="chart", role="group", aria_label=label)
    return tag("div", drawing, class_="drawn", tabindex="0", role="region", aria_label=label)


def _scale(top: int) -> Iterator[Markup]:
    for part in (0.5, 1.0):
        y = _y(top * part, top)
        yield tag("line", x1=LEFT, x2=WIDTH, y1=y, y2=y, class_="scale")
        yield tag("text", f"{round(top * part):,}", x=LEFT - 6, y=y + 4, text_anchor="end")


def _bars(story: Story, top: int) -> Iterator[Markup]:
    binned = list(_binned(story.calls))
    wide = (WIDTH - LEFT) / len(binned)
    before: object = None
    for number, group in enumerate(binned):
        tallest = max(group, key=lambda call: call.tokens)
        newest = group[-1]
        x = LEFT + number * wide
        if newest.boundary != before and newest.boundary is not None:
            told = story.boundary_of(newest)
            yield _mark(x, newest, told)
        before = newest.boundary
        high, summary = _y(tallest.tokens, top), _y(tallest.summary_tokens, top)
        floor = HEIGHT - BELOW
        title = f"call {tallest.call.number}: {tallest.tokens:,} tokens"
        yield tag(
            "a",
            tag("title", title),
            tag("rect", x=_n(x), y=_n(high), width=_n(wide * 0.9), height=_n(floor - high)),
            tag(
                "rect",
                x=_n(x),
                y=_n(summary),
                width=_n(wide * 0.9),
                height=_n(floor - summary),
                class_="summary",
            )
            if tallest.summary_tokens
            else "",
            href=f"#call-{tallest.call.number}",
            class_="bar",
            data_call=tallest.call.number,
        )


def _mark(x: float, call: ToldCall, told: ToldBoundary | None) -> Markup:
    lineage, number = call.boundary or ("", 0)
    line = tag("line", x1=_n(x), x2=_n(x), y1=0, y2=HEIGHT - BELOW, class_="boundary")
    title = tag("title", f"boundary {number} on {lineage}, from call {call.call.number} on")
    if told is None:
        return tag("g", title, line)
    return tag("a", title, line, href=f"#{boundary_id(story_key=told.key)}")


def boundary_id(story_key: tuple[str, int]) -> str:
    """What a boundary is called in links; a lineage's name may hold anything."""
    lineage, number = story_key
    return f"boundary-{lineage.encode('utf-8', 'surrogatepass').hex()}-{number}"


def fate_chart(story: Story) -> Markup:
    """A stripe a boundary, as long as the log was then, and one for now: what became of it."""
    positions = [told.position for told in story.blocks]
    if not positions:
        return tag("p", "The log holds no block.")
    served = [told for told in story.boundaries if told.node.served_from is not None]
    newest = sorted(served, key=lambda told: told.upto)[-MOST_STRIPES:]
    lineages = sorted({told.lineage for told in newest})
    rows: list[Markup] = []
    for lineage in lineages:
        if len(lineages) > 1:
            rows.append(_named(len(rows), f"lineage {lineage}"))
        stripes = (told for told in newest if told.lineage == lineage)
        rows += [_stripe(number, told, positions) for number, told in enumerate(stripes, len(rows))]
    if len(lineages) > 1:
        rows.append(_named(len(rows), f"lineage {story.view.coordinate.lineage}"))
    rows.append(_now(story, len(rows)))
    high = (len(rows)) * (STRIPE + 4) + 4
    label = "What had become of each block of the log, at each boundary and now"
    return _drawn(*rows, high=high, label=label)


def _named(number: int, name: str) -> Markup:
    return tag("text", name, x=LEFT, y=_row(number) + 11)


def _stripe(number: int, told: ToldBoundary, positions: Sequence[int]) -> Markup:
    fates = {
        position: fate
        for fate, where in told.fates.items()
        for position in _among(positions, where)
    }
    label = tag("text", f"#{told.upto}", x=LEFT - 6, y=_row(number) + 11, text_anchor="end")
    title = tag("title", f"boundary {told.node.number} on {told.lineage}, at #{told.upto}")
    cells = _cells([fates.get(position) for position in positions], number)
    return tag("a", title, label, *cells, href=f"#{boundary_id(told.key)}")


def _now(story: Story, number: int) -> Markup:
    label = tag("text", "now", x=LEFT - 6, y=_row(number) + 11, text_anchor="end")
    cells = _cells([told.fate for told in story.blocks], number)
    return tag("g", label, *cells)


def _cells(fates: Sequence[Fate | None], number: int) -> Iterator[Markup]:
    """Runs of one fate; of very many blocks the fate that most of each few have."""
    each = max(1, -(-len(fates) // COLUMNS))
    seen = [_most(fates[at : at + each]) for at in range(0, len(fates), each)]
    wide = (WIDTH - LEFT) / len(seen)
    begins = 0
    for at in range(1, len(seen) + 1):
        if at == len(seen) or seen[at] != seen[begins]:
            fate = seen[begins]
            if fate is not None:
                x, width = LEFT + begins * wide, (at - begins) * wide
                yield tag(
                    "rect",
                    tag("title", str(fate)),
                    x=_n(x),
                    y=_row(number),
                    width=_n(width),
                    height=STRIPE,
                    class_=f"fate-{fate}",
                )
            begins = at


def _most(fates: Sequence[Fate | None]) -> Fate | None:
    return max(fates, key=fates.count)


def _among(positions: Sequence[int], where: Ranges) -> Iterator[int]:
    return (position for position in positions if position in where)


def _binned(calls: Sequence[ToldCall]) -> Iterator[Sequence[ToldCall]]:
    each = max(1, -(-len(calls) // MOST_BARS))
    return (calls[at : at + each] for at in range(0, len(calls), each))


def _row(number: int) -> int:
    return 2 + number * (STRIPE + 4)


def _y(tokens: float, top: int) -> float:
    high = HEIGHT - BELOW - 12
    return 12 + high * (1 - tokens / top)


def _n(value: float) -> str:
    return f"{value:.1f}"
