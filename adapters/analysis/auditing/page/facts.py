"""What a reader asks of a session first: when, where, which model, what it cost, what it lost."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from .....domain.blocks import Kind
from .....domain.counting.sizes import Basis
from .....domain.models import ModelOverride
from .....domain.session_events import ModelCalled
from ....models.context_limits import overrides_by
from ....models.model_catalog import cost_of
from ..told_times import told_at
from .markup import Markup, joined, several, tag
from .story import Story

TITLE = 100
"""Characters of a first prompt that stands for a title."""
NAMED = 8
"""Lost facts that are named; the boundaries have all."""

Row = tuple[Markup, Markup]


def facts(story: Story) -> Iterator[Row]:
    """Rows of a list: what it is, and the answer. A fact that is not known has no row."""
    reported = [call.call.reported for call in story.calls if call.call.reported is not None]
    yield from _when(story)
    if project := story.session.log.project:
        yield _row("Project", project)
    models = Counter(call.model for call in reported if call.model)
    if models:
        yield _row("Model", ", ".join(_of_calls(name, n) for name, n in models.most_common()))
    if story.calls:
        yield _row("Prompts", _prompts(story))
        yield _row("Cost", _cost(story, reported))
    yield _row("Lost", _lost(story))


def title(story: Story) -> str:
    """The session's title, else what its user said first, else its key."""
    said = (told.block.text for told in story.blocks if told.block.kind is Kind.USER)
    first = next((" ".join(text.split()) for text in said if text.strip()), "")
    short = first if len(first) <= TITLE else f"{first[: TITLE - 1]}…"
    return story.session.log.title or short or story.session.key


def _when(story: Story) -> Iterator[Row]:
    times = [told.when for told in story.blocks if told.when is not None]
    if times:
        first, last = _minute(min(times)), _minute(max(times))
        yield _row("Date", f"{first if first == last else f'{first} to {last}'} UTC")


def _minute(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M}"


def _of_calls(name: str, number: int) -> str:
    return f"{name} ({several(number, 'call', 'calls')})"


def _prompts(story: Story) -> str:
    parts = [
        f"{sum(numbers):,} tokens in {several(len(numbers), 'call', 'calls')}, {basis}"
        for basis in Basis
        if (numbers := [call.tokens for call in story.calls if call.size.basis is basis])
    ]
    written = sum(
        call.call.reported.usage.output or 0
        for call in story.calls
        if call.call.reported and call.call.reported.usage
    )
    return "; ".join([*parts, *([f"{written:,} tokens written, reported"] if written else [])])


def _cost(story: Story, reported: Sequence[ModelCalled]) -> str:
    """As the log tells it, else by the model's prices on that day."""
    overrides = overrides_by(story.session.log.settings)
    costs = [_cost_of(call, overrides) for call in reported]
    known = [cost for cost in costs if cost is not None]
    if not known:
        return "not known: the log tells neither costs nor tokens of models with known prices"
    without = len(costs) - len(known)
    rest = f", without {several(without, 'call', 'calls')} of unknown cost" if without else ""
    return f"${sum(known):,.2f}{rest}"


def _cost_of(call: ModelCalled, overrides: Mapping[str, ModelOverride]) -> float | None:
    if call.cost_usd or call.usage is None or call.model is None:
        return call.cost_usd
    return cost_of(call.model, call.usage, overrides, at=told_at(call))


def _lost(story: Story) -> object:
    if not story.boundaries:
        return "nothing: there was no compaction"
    lost = {
        (fact.kind, fact.text): fact
        for told in story.boundaries
        if told.diff is not None
        for fact in told.diff.lost
    }
    again = [fact for fact in lost.values() if fact.used_again]
    says = (
        f"{several(len(lost), 'fact', 'facts')} left the view at a compaction,"
        f" {len(again):,} of them were used again later"
    )
    if not again:
        return says
    named = joined([tag("code", fact.text[:80], dir="auto") for fact in again[:NAMED]], ", ")
    more = f" and {len(again) - NAMED:,} more" if len(again) > NAMED else ""
    return joined([says, ": ", named, more])


def _row(name: str, value: object) -> Row:
    return tag("dt", name), tag("dd", value)
