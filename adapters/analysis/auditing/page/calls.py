"""Renders the calls of a session as HTML: what each was sent, kept, shortened and summarized."""

from collections.abc import Iterator

from .....domain.ranges import Ranges
from .....domain.settlement import BlockStatus
from .chart import make_boundary_id
from .history import render_handles
from .markup import Markup, make_tag
from .page_selection import PageSelection
from .page_story import PageCall, PageStory


def render_calls(story: PageStory, cuts: PageSelection) -> Iterator[Markup]:
    """Yield a line for each call, with its request inside."""
    for told in cuts.calls:
        yield _render_call(story, told, cuts)


def _render_call(story: PageStory, told: PageCall, cuts: PageSelection) -> Markup:
    call, reported = told.call, told.call.report
    model = f" {reported.model}" if reported and reported.model else ""
    proof = str(told.sent_view.proof) if told.sent_view else "reconstructed"
    return make_tag(
        "details",
        make_tag(
            "summary",
            make_tag("span", f"call {call.number}", class_="handle"),
            make_tag("span", f" {told.size}", class_="size"),
            make_tag("span", model, class_="kind"),
            " ",
            make_tag("span", proof, class_="proof"),
        ),
        make_tag("dl", *_render_details(story, told, cuts)),
        make_tag(
            "button", "Mark in the history", type="button", class_="mark", data_call=call.number
        ),
        id=f"call-{call.number}",
        class_="call",
    )


def _render_details(story: PageStory, told: PageCall, cuts: PageSelection) -> Iterator[Markup]:
    call, reported = told.call, told.call.report
    boundary = story.find_boundary(told)
    yield from _make_row(
        "saw the log up to",
        render_handles(
            Ranges.of([call.last_seen_position] if call.last_seen_position else []), cuts
        ),
    )
    if boundary is None:
        yield from _make_row("view", "all of the log")
    else:
        link = make_tag(
            "a",
            boundary.name,
            href=f"#{make_boundary_id(boundary.key)}",
        )
        yield from _make_row("view begins at", link)
        for fate, positions in boundary.statuses.items():
            if fate is not BlockStatus.VISIBLE:
                yield from _make_row(str(fate), render_handles(positions, cuts))
    visible = boundary.statuses.get(BlockStatus.VISIBLE, Ranges()) if boundary else Ranges()
    first = boundary.node.boundary.after + 1 if boundary else 1
    kept = (visible & Ranges.span(1, first - 1)) | Ranges.span(first, call.last_seen_position)
    yield from _make_row("sent whole", render_handles(kept, cuts))
    yield from _make_row("answer", render_handles(Ranges.of(call.answer), cuts))
    if told.sent_view is not None and told.sent_view.why is not None:
        yield from _make_row("what speaks against it", told.sent_view.why)
    if reported is not None:
        if reported.context is not None:
            yield from _make_row("estimated prompt", f"{told.tokens:,} tokens")
        if reported.cost_usd is not None:
            yield from _make_row("cost", f"${reported.cost_usd:.4f}")
        if reported.fingerprint is not None:
            yield from _make_row("fingerprint", make_tag("code", reported.fingerprint))
            where = f"{reported.lineage}@{reported.lineage_version}#{reported.position}"
            yield from _make_row("coordinate", make_tag("code", where))


def _make_row(name: str, value: object) -> tuple[Markup, Markup]:
    return make_tag("dt", name), make_tag("dd", value)
