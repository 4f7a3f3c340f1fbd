"""Who writes a summary when others fail: in order, with patience, and never without an end."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from cutbank.adapters.runtime.compaction.cancellation import Cancellation
from cutbank.adapters.runtime.compaction.summary_chain import (
    NoListener,
    Refusal,
    SummaryChain,
    UnwrittenError,
)
from cutbank.domain.blocks import Block
from cutbank.domain.errors import (
    CompactionCancelledError,
    RejectedSummaryError,
    SummariserFailedError,
)
from cutbank.domain.item import Item
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.extractive import Extractive
from cutbank.domain.summaries.summarizer import Draft, Material, Summariser
from cutbank.domain.window import OnFailure

GOOD = Draft("A summary of it.", model="small", usage=Usage(input=100, output=5), cost_usd=0.001)
BAD = Draft("BAD", model="small", usage=Usage(input=90, output=1), cost_usd=0.0009)


@dataclass
class Scripted:
    """Does one thing after another; the last one again and again."""

    steps: list[Draft | Exception]
    name: str = "scripted"
    asked: list[Material] = field(default_factory=list)

    async def summarise(self, material: Material) -> Draft:
        self.asked.append(material)
        step = self.steps[min(len(self.asked), len(self.steps)) - 1]
        if isinstance(step, Exception):
            raise step
        return step


class Pauses(Cancellation):
    """Waits no time, and remembers how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float] = []

    def pause(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.check()


class Heard(NoListener):
    def __init__(self) -> None:
        self.begun: list[str] = []
        self.refusals: list[Refusal] = []

    def begins(self, summariser: str) -> None:
        self.begun.append(summariser)

    def refused(self, refusal: Refusal) -> None:
        self.refusals.append(refusal)


def judge(draft: Draft) -> None:
    if draft.text == "BAD":
        raise RejectedSummaryError("made-up", "it is bad")


@pytest.fixture
def material() -> Material:
    blocks = [Block.user(f"Please look at file_{n}.py and say what it does.") for n in range(40)]
    gone = tuple(Item(n, block, 1, 12) for n, block in enumerate(blocks, 1))
    return Material(gone=gone, covers=Ranges.span(1, 40), budget=300)


def transient(**how: float) -> SummariserFailedError:
    return SummariserFailedError("overloaded", is_transient=True, **how)


def test_the_first_draft_that_passes_is_taken(material: Material) -> None:
    first, second = Scripted([GOOD]), Scripted([GOOD], "second")

    written = SummaryChain((first, second)).written(material, judge, Cancellation())

    assert (written.draft, written.summariser, written.refusals) == (GOOD, "scripted", ())
    assert second.asked == []


def test_failures_that_may_pass_are_tried_again_with_growing_pauses(material: Material) -> None:
    fails = Scripted([transient(), transient(), transient(), GOOD])
    pauses = Pauses()

    written = SummaryChain((fails,), backoff_s=2).written(material, judge, pauses)

    assert written.draft is GOOD
    assert pauses.waited == [2, 4, 8]


def test_a_provider_s_wish_to_wait_longer_is_heeded(material: Material) -> None:
    pauses = Pauses()

    SummaryChain((Scripted([transient(retry_after_s=17), GOOD]),)).written(material, judge, pauses)

    assert pauses.waited == [17]


def test_a_wait_beyond_the_time_limit_is_not_begun(material: Material) -> None:
    asks = Scripted([transient(retry_after_s=3_600), GOOD])
    pauses = Pauses()

    written = SummaryChain((asks,), time_limit_s=60).written(material, judge, pauses)

    assert written.summariser == "extractive"
    assert pauses.waited == []
    assert "3600 s more" in written.refusals[0].reason


def test_retries_come_to_an_end(material: Material) -> None:
    fails = Scripted([transient()])

    written = SummaryChain((fails,), retries=2).written(material, judge, Pauses())

    assert len(fails.asked) == 3
    assert written.summariser == "extractive"


def test_what_cannot_pass_is_not_tried_again(material: Material) -> None:
    fails = Scripted([SummariserFailedError("no key")])

    written = SummaryChain((fails,)).written(material, judge, Pauses())

    assert len(fails.asked) == 1
    assert str(written.refusals[0]) == "scripted: no key"


def test_a_refused_draft_is_asked_for_once_more_with_the_reason(material: Material) -> None:
    mends = Scripted([BAD, GOOD])

    written = SummaryChain((mends,)).written(material, judge, Cancellation())

    assert written.draft is GOOD
    assert mends.asked[0].instructions is None
    assert "made-up" in (mends.asked[1].instructions or "")
    (refusal,) = written.refusals
    assert (refusal.rule, refusal.usage, refusal.cost_usd) == ("made-up", BAD.usage, 0.0009)


def test_what_a_draft_said_never_becomes_an_instruction(material: Material) -> None:
    def quotes(draft: Draft) -> None:
        if draft.text == "BAD":
            raise RejectedSummaryError("misquoted-user", "the user never said: drop all tables")

    mends = Scripted([BAD, GOOD])

    SummaryChain((mends,)).written(material, quotes, Cancellation())

    assert "the user never said" in (mends.asked[1].instructions or "")
    assert "drop" not in (mends.asked[1].instructions or "")


def test_whoever_is_refused_twice_makes_way(material: Material) -> None:
    bad = Scripted([BAD])
    heard = Heard()

    written = SummaryChain((bad,)).written(material, judge, Cancellation(), heard)

    assert len(bad.asked) == 2
    assert written.summariser == "extractive"
    assert heard.begun == ["scripted", "extractive"]
    assert [refusal.rule for refusal in heard.refusals] == ["made-up", "made-up"]


def test_the_end_of_the_chain_cannot_be_refused(material: Material) -> None:
    def refuses(_: Draft) -> None:
        raise RejectedSummaryError("never", "nothing is good enough")

    written = SummaryChain((Scripted([GOOD]),)).written(material, refuses, Cancellation())

    assert written.summariser == "listing"
    assert written.draft.text
    assert [refusal.summariser for refusal in written.refusals] == [
        "scripted",
        "scripted",
        "extractive",
    ]


@pytest.mark.parametrize("error", [ValueError("x\ny"), TimeoutError("own"), KeyError("k")])
def test_whatever_a_summariser_raises_is_one_line_of_the_record(
    material: Material, error: Exception
) -> None:
    written = SummaryChain((Scripted([error]),)).written(material, judge, Cancellation())

    (refusal,) = written.refusals
    assert type(error).__name__ in refusal.reason
    assert "\n" not in str(refusal)
    assert written.summariser == "extractive"


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Ends what a test left hanging."""
    event = threading.Event()
    yield event
    event.set()


def hanging(release: threading.Event) -> list[Callable[[Material], object]]:
    async def awaits(_: Material) -> Draft:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    def blocks(_: Material) -> Draft:
        release.wait()
        return GOOD

    return [awaits, blocks]


@pytest.mark.parametrize("kind", [0, 1], ids=["asynchronous", "synchronous"])
def test_one_that_hangs_is_left_when_its_time_is_over(
    material: Material, release: threading.Event, kind: int
) -> None:
    @dataclass(frozen=True)
    class Hangs:
        name: str = "hangs"

        def summarise(self, material: Material) -> Draft:
            return hanging(release)[kind](material)  # type: ignore[return-value]

    written = SummaryChain((Hangs(),), time_limit_s=0.2).written(material, judge, Cancellation())

    assert written.summariser == "extractive"
    assert "longer than its 0.2 seconds" in written.refusals[0].reason


@pytest.mark.parametrize("kind", [0, 1], ids=["asynchronous", "synchronous"])
def test_cancelling_ends_the_wait_for_one_that_hangs(
    material: Material, release: threading.Event, kind: int
) -> None:
    cancellation = Cancellation()

    @dataclass(frozen=True)
    class Hangs:
        name: str = "hangs"

        def summarise(self, material: Material) -> Draft:
            threading.Timer(0.0, cancellation.ask).start()
            return hanging(release)[kind](material)  # type: ignore[return-value]

    with pytest.raises(CompactionCancelledError):
        SummaryChain((Hangs(),)).written(material, judge, cancellation)


def test_what_was_cancelled_before_is_never_begun(material: Material) -> None:
    cancellation, asked = Cancellation(), Scripted([GOOD])
    cancellation.ask()

    with pytest.raises(CompactionCancelledError):
        SummaryChain((asked,)).written(material, judge, cancellation)

    assert asked.asked == []


def test_it_works_inside_a_running_event_loop(material: Material) -> None:
    async def agent() -> str:
        chain = SummaryChain((Scripted([GOOD]),))
        return chain.written(material, judge, Cancellation()).summariser

    assert asyncio.run(agent()) == "scripted"


# What a plan wants where no summary can be had


def test_where_the_plan_wants_a_notice_nobody_else_stands_in(material: Material) -> None:
    heard, fails = Heard(), Scripted([SummariserFailedError("no such model")])

    written = SummaryChain((fails,)).written(
        material, judge, Cancellation(), heard, OnFailure.NOTICE
    )

    assert heard.begun == ["scripted", "notice"]
    assert written.draft.text.startswith("[Context Pruned: Removed 40 ")
    assert [refusal.summariser for refusal in written.refusals] == ["scripted"]


def test_where_the_plan_wants_the_view_unchanged_it_is_said_who_failed(material: Material) -> None:
    heard, fails = Heard(), Scripted([SummariserFailedError("no such model")])

    with pytest.raises(UnwrittenError, match="scripted: no such model"):
        SummaryChain((fails,)).written(material, judge, Cancellation(), heard, OnFailure.UNCHANGED)

    assert heard.begun == ["scripted"]


@pytest.mark.parametrize("on_failure", [OnFailure.NOTICE, OnFailure.UNCHANGED])
@pytest.mark.parametrize("others", [(), (Scripted([SummariserFailedError("gone")]),)])
def test_who_is_asked_to_write_by_rules_does_so_whatever_the_plan_wants(
    material: Material, on_failure: OnFailure, others: tuple[Scripted, ...]
) -> None:
    named: tuple[Summariser, ...] = (*others, Extractive()) if others else ()

    written = SummaryChain(named).written(material, judge, Cancellation(), on_failure=on_failure)

    assert written.summariser == "extractive"
