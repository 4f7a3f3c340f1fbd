"""Lists the main facts of a session: when, where, which model, its cost and what it lost."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from .....domain.blocks import Kind
from .....domain.models import ModelOverride
from .....domain.session_events import ModelCalled
from .....domain.token_estimate import SizeBasis
from ....models.context_limits import make_overrides
from ....models.model_catalog import compute_call_cost
from ..source_times import find_source_time
from .markup import Markup, format_plural, join_markup, make_tag
from .page_story import PageStory

MAX_TITLE_CHARACTERS = 100
_MAX_NAMED = 8
"""The number of lost facts shown here; the boundaries list all."""

FactRow = tuple[Markup, Markup]


def render_facts(story: PageStory) -> Iterator[FactRow]:
    """Yield rows of label and value; an unknown fact has no row."""
    reported = [call.call.report for call in story.calls if call.call.report is not None]
    yield from _time_rows(story)
    if project := story.session.log.project:
        yield _make_row("Project", project)
    models = Counter(call.model for call in reported if call.model)
    if models:
        yield _make_row(
            "Model", ", ".join(_format_call_count(name, n) for name, n in models.most_common())
        )
    if story.calls:
        yield _make_row("Prompts", _format_prompts(story))
        yield _make_row("Cost", _format_cost(story, reported))
    yield _make_row("Lost", _format_lost(story))


def find_title(story: PageStory) -> str:
    """Return the session's title, else the user's first message, else its key."""
    said = (told.block.text for told in story.blocks if told.block.kind is Kind.USER)
    first = next((" ".join(text.split()) for text in said if text.strip()), "")
    short = first if len(first) <= MAX_TITLE_CHARACTERS else f"{first[: MAX_TITLE_CHARACTERS - 1]}…"
    return story.session.log.title or short or story.session.key


def _time_rows(story: PageStory) -> Iterator[FactRow]:
    times = [told.when for told in story.blocks if told.when is not None]
    if times:
        first, last = _format_minute(min(times)), _format_minute(max(times))
        yield _make_row("Date", f"{first if first == last else f'{first} to {last}'} UTC")


def _format_minute(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M}"


def _format_call_count(name: str, number: int) -> str:
    return f"{name} ({format_plural(number, 'call', 'calls')})"


def _format_prompts(story: PageStory) -> str:
    parts = [
        f"{sum(numbers):,} tokens in {format_plural(len(numbers), 'call', 'calls')}, {basis}"
        for basis in SizeBasis
        if (numbers := [call.tokens for call in story.calls if call.size.basis is basis])
    ]
    written = sum(
        call.call.report.usage.output or 0
        for call in story.calls
        if call.call.report and call.call.report.usage
    )
    return "; ".join([*parts, *([f"{written:,} tokens written, reported"] if written else [])])


def _format_cost(story: PageStory, reported: Sequence[ModelCalled]) -> str:
    """Return the cost in the log, else the cost by the model's prices on that day."""
    overrides = make_overrides(story.session.log.settings)
    costs = [_find_cost(call, overrides) for call in reported]
    known = [cost for cost in costs if cost is not None]
    if not known:
        return "not known: the log tells neither costs nor tokens of models with known prices"
    without = len(costs) - len(known)
    rest = f", without {format_plural(without, 'call', 'calls')} of unknown cost" if without else ""
    return f"${sum(known):,.2f}{rest}"


def _find_cost(call: ModelCalled, overrides: Mapping[str, ModelOverride]) -> float | None:
    if call.cost_usd or call.usage is None or call.model is None:
        return call.cost_usd
    return compute_call_cost(call.model, call.usage, overrides, at=find_source_time(call))


def _format_lost(story: PageStory) -> object:
    if not story.boundaries:
        return "nothing: there was no compaction"
    lost = {
        (fact.kind, fact.text): fact
        for told in story.boundaries
        if told.diff is not None
        for fact in told.diff.lost_facts
    }
    again = [fact for fact in lost.values() if fact.later_uses]
    says = (
        f"{format_plural(len(lost), 'fact', 'facts')} left the view at a compaction,"
        f" {len(again):,} of them were used again later"
    )
    if not again:
        return says
    named = join_markup(
        [make_tag("code", fact.text[:80], dir="auto") for fact in again[:_MAX_NAMED]], ", "
    )
    more = f" and {len(again) - _MAX_NAMED:,} more" if len(again) > _MAX_NAMED else ""
    return join_markup([says, ": ", named, more])


def _make_row(name: str, value: object) -> FactRow:
    return make_tag("dt", name), make_tag("dd", value)
