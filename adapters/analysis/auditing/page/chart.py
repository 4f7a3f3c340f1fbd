"""Draws how much of the context each call took, and what became of the log, as inline SVG."""

from collections.abc import Iterator, Sequence

from .....domain.counting.sizes import Basis
from .....domain.coverage import Fate
from .....domain.ranges import Ranges
from .markup import Markup, tag
from .story import Story, ToldBoundary, ToldCall

HEIGHT = 220
ABOVE, BELOW = 14, 24
"""Room for what is written above the bars and below them."""
MOST_NUMBERS = 12
"""Compactions whose numbers have room above their lines on a phone."""
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
    reported = sum(call.size.basis is Basis.REPORTED for call in calls)
    label = (
        f"Tokens of the prompts of {len(calls):,} calls, {reported:,} of them reported;"
        f" the largest has {top:,}"
    )
    drawing = _drawn(
        *_scale(top),
        *_bars(story, top),
        tag("text", "call 1", x=0, y=HEIGHT - 6),
        tag("text", f"call {len(calls)}", x="100%", y=HEIGHT - 6, text_anchor="end"),
        high=HEIGHT,
        label=label,
    )
    met = {
        "reported": ("prompt, reported by the provider", reported > 0),
        "estimated": ("prompt, estimated", reported < len(calls)),
        "summary": ("the summary in it, estimated", any(call.summary_tokens for call in calls)),
        "boundary": ("compaction", any(call.boundary for call in calls)),
    }
    named = [(f"bar-{kind}", words) for kind, (words, is_met) in met.items() if is_met]
    return _with_legend("The prompt of each call", drawing, named, "Marks of the calls")


def _with_legend(
    title: str, drawing: Markup, named: Sequence[tuple[str, str]], label: str
) -> Markup:
    """A drawing below its title, with one legend of its own."""
    swatches = (tag("span", words, class_=f"swatch {name}") for name, words in named)
    legend = tag("p", *swatches, class_="legend", aria_label=label)
    return tag("figure", tag("figcaption", title), drawing, legend)


def _drawn(*parts: Markup, high: int, label: str) -> Markup:
    """A drawing as wide as its page, down to a phone's: across, all is in percent."""
    return tag("svg", *parts, height=high, class_="chart", role="group", aria_label=label)


def _scale(top: int) -> Iterator[Markup]:
    for part in (0.5, 1.0):
        y = _y(top * part, top)
        yield tag("line", x1=0, x2="100%", y1=y, y2=y, class_="scale")
        yield tag("text", f"{round(top * part):,}", x=-6, y=y + 4, text_anchor="end")


def _bars(story: Story, top: int) -> Iterator[Markup]:
    binned = list(_binned(story.calls))
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
        high, summary = _y(tallest.tokens, top), _y(tallest.summary_tokens, top)
        floor = HEIGHT - BELOW
        yield tag(
            "a",
            tag("title", f"call {tallest.call.number}: {tallest.size}"),
            _bar(x, wide, high, floor, tallest.size.basis),
            _bar(x, wide, summary, floor, "summary") if tallest.summary_tokens else "",
            href=f"#call-{tallest.call.number}",
            class_="bar",
            data_call=tallest.call.number,
        )
    for number, call in begun:
        is_numbered = len(begun) <= MOST_NUMBERS
        yield _mark(number * wide, call, story.boundary_of(call), is_numbered=is_numbered)


def _bar(x: float, wide: float, high: float, floor: float, kind: str) -> Markup:
    return tag(
        "rect",
        x=_percent(x),
        y=_n(high),
        width=_percent(wide * 0.9),
        height=_n(floor - high),
        class_=f"bar-{kind}",
    )


def _mark(x: float, call: ToldCall, told: ToldBoundary | None, *, is_numbered: bool) -> Markup:
    at = _percent(x)
    line = tag("line", x1=at, x2=at, y1=0, y2=HEIGHT - BELOW, class_="boundary")
    compaction = told.name if told else "a compaction"
    title = tag("title", f"{compaction}, from call {call.call.number} on")
    # Beside its line on the side where there is room.
    side = {"dx": 4} if x < 50 else {"dx": -4, "text_anchor": "end"}
    name = tag("text", told.compaction, x=at, y=10, **side) if told and is_numbered else ""
    if told is None:
        return tag("g", title, line, name)
    return tag("a", title, line, name, href=f"#{boundary_id(story_key=told.key)}")


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
    label = "What had become of each block of the log, at each compaction and now"
    met = {told.fate for told in story.blocks}.union(*(one.fates for one in story.boundaries))
    named = [(f"fate-{fate}", str(fate)) for fate in Fate if fate in met]
    drawing = _drawn(*rows, high=high, label=label)
    return _with_legend("What became of the log", drawing, named, "Colours of the fates")


def _named(number: int, name: str) -> Markup:
    return tag("text", name, x=0, y=_row(number) + 11)


def _stripe(number: int, told: ToldBoundary, positions: Sequence[int]) -> Markup:
    fates = {
        position: fate
        for fate, where in told.fates.items()
        for position in _among(positions, where)
    }
    label = tag("text", f"#{told.upto}", x=-6, y=_row(number) + 11, text_anchor="end")
    title = tag("title", f"{told.name}, at #{told.upto}")
    cells = _cells([fates.get(position) for position in positions], number)
    return tag("a", title, label, *cells, href=f"#{boundary_id(told.key)}")


def _now(story: Story, number: int) -> Markup:
    label = tag("text", "now", x=-6, y=_row(number) + 11, text_anchor="end")
    cells = _cells([told.fate for told in story.blocks], number)
    return tag("g", label, *cells)


def _cells(fates: Sequence[Fate | None], number: int) -> Iterator[Markup]:
    """Runs of one fate; of very many blocks the fate that most of each few have."""
    each = max(1, -(-len(fates) // COLUMNS))
    seen = [_most(fates[at : at + each]) for at in range(0, len(fates), each)]
    wide = 100 / len(seen)
    begins = 0
    for at in range(1, len(seen) + 1):
        if at == len(seen) or seen[at] != seen[begins]:
            fate = seen[begins]
            if fate is not None:
                x, width = begins * wide, (at - begins) * wide
                yield tag(
                    "rect",
                    tag("title", str(fate)),
                    x=_percent(x),
                    y=_row(number),
                    width=_percent(width),
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
    high = HEIGHT - BELOW - ABOVE
    return ABOVE + high * (1 - tokens / top)


def _n(value: float) -> str:
    return f"{value:.1f}"


def _percent(value: float) -> str:
    return f"{value:.2f}%"
