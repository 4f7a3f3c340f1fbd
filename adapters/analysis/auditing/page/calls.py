"""The calls of a session as HTML: what each was sent, kept, shortened and summarised."""

from collections.abc import Iterator

from .....domain.coverage import Fate
from .....domain.ranges import Ranges
from .chart import boundary_id
from .cuts import Cuts
from .history import handles
from .markup import Markup, tag
from .story import Story, ToldCall


def calls(story: Story, cuts: Cuts) -> Iterator[Markup]:
    """A line a call, with what it was sent inside."""
    for told in cuts.calls:
        yield _call(story, told, cuts)


def _call(story: Story, told: ToldCall, cuts: Cuts) -> Markup:
    call, reported = told.call, told.call.reported
    model = f" {reported.model}" if reported and reported.model else ""
    proof = str(told.shown.proof) if told.shown else "reconstructed"
    return tag(
        "details",
        tag(
            "summary",
            tag("span", f"call {call.number}", class_="handle"),
            tag("span", f" {told.size}", class_="size"),
            tag("span", model, class_="kind"),
            " ",
            tag("span", proof, class_="proof"),
        ),
        tag("dl", *_said(story, told, cuts)),
        tag("button", "Mark in the history", type="button", class_="mark", data_call=call.number),
        id=f"call-{call.number}",
        class_="call",
    )


def _said(story: Story, told: ToldCall, cuts: Cuts) -> Iterator[Markup]:
    call, reported = told.call, told.call.reported
    boundary = story.boundary_of(told)
    yield from _row("saw the log up to", handles(Ranges.of([call.sees] if call.sees else []), cuts))
    if boundary is None:
        yield from _row("view", "all of the log")
    else:
        link = tag(
            "a",
            boundary.name,
            href=f"#{boundary_id(boundary.key)}",
        )
        yield from _row("view begins at", link)
        for fate, positions in boundary.fates.items():
            if fate is not Fate.VISIBLE:
                yield from _row(str(fate), handles(positions, cuts))
    visible = boundary.fates.get(Fate.VISIBLE, Ranges()) if boundary else Ranges()
    first = boundary.node.boundary.after + 1 if boundary else 1
    kept = (visible & Ranges.span(1, first - 1)) | Ranges.span(first, call.sees)
    yield from _row("sent whole", handles(kept, cuts))
    yield from _row("answer", handles(Ranges.of(call.answer), cuts))
    if told.shown is not None and told.shown.why is not None:
        yield from _row("what speaks against it", told.shown.why)
    if reported is not None:
        if reported.context is not None:
            yield from _row("estimated prompt", f"{told.tokens:,} tokens")
        if reported.cost_usd is not None:
            yield from _row("cost", f"${reported.cost_usd:.4f}")
        if reported.fingerprint is not None:
            yield from _row("fingerprint", tag("code", reported.fingerprint))
            where = f"{reported.lineage}@{reported.lineage_version}#{reported.position}"
            yield from _row("coordinate", tag("code", where))


def _row(name: str, value: object) -> tuple[Markup, Markup]:
    return tag("dt", name), tag("dd", value)
