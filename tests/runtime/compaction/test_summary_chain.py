"""Who writes a summary when others fail: in order, with patience, and never without an end."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import pytest

from cutbank.adapters.runtime.compaction.cancellation import Cancellation
from cutbank.adapters.runtime.compaction.summary_chain import (
    DraftRefusal,
    SummaryChain,
    SummaryObserver,
    UnwrittenError,
)
from cutbank.domain.blocks import Block
from cutbank.domain.errors import (
    CompactionCancelledError,
    RejectedSummaryError,
    SummarizerFailedError,
)
from cutbank.domain.item import Item
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.summarizer import Draft, Material, Summarizer
from cutbank.domain.window import OnFailure

GOOD = Draft("A summary of it.", model="small", usage=Usage(input=100, output=5), cost_usd=0.001)
BAD = Draft("BAD", model="small", usage=Usage(input=90, output=1), cost_usd=0.0009)


@dataclass
class Scripted:
    """Does one thing after another; the last one again and again."""

    steps: list[Draft | Exception]
    name: str = "scripted"
    asked: list[Material] = field(default_factory=list)

    async def summarize(self, material: Material) -> Draft:
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


class Heard(SummaryObserver):
    def __init__(self) -> None:
        self.begun: list[str] = []
        self.refusals: list[DraftRefusal] = []

    def note_begin(self, summarizer: str) -> None:
        self.begun.append(summarizer)

    def note_refusal(self, refusal: DraftRefusal) -> None:
        self.refusals.append(refusal)


def judge(draft: Draft) -> None:
    if draft.text == "BAD":
        raise RejectedSummaryError("made-up", "it is bad")


@pytest.fixture
def material() -> Material:
    blocks = [Block.user(f"Please look at file_{n}.py and say what it does.") for n in range(40)]
    gone = tuple(Item(n, block, 1, 12) for n, block in enumerate(blocks, 1))
    return Material(removed_items=gone, covers=Ranges.span(1, 40), budget=300)


def transient(**how: float) -> SummarizerFailedError:
    return SummarizerFailedError("overloaded", is_transient=True, **how)


def test_the_first_draft_that_passes_is_taken(material: Material) -> None:
    first, second = Scripted([GOOD]), Scripted([GOOD], "second")

    written = SummaryChain((first, second)).write(material, judge, Cancellation())

    assert (written.draft, written.summarizer, written.refusals) == (GOOD, "scripted", ())
    assert second.asked == []


def test_failures_that_may_pass_are_tried_again_with_growing_pauses(material: Material) -> None:
    mends, fails = Scripted([transient(), transient(), transient(), GOOD]), Scripted([transient()])
    pauses, run = Pauses(), Pauses()

    written = SummaryChain((mends,), backoff_s=2).write(material, judge, pauses)
    unwritten = SummaryChain((fails,), time_limit_s=600, retries=10, backoff_s=1).write(
        material, judge, run
    )

    assert written.draft is GOOD
    assert pauses.waited == [2, 4, 8]
    assert run.waited == [1, 2, 4, 8, 16, 30, 30, 30, 30, 30]
    assert unwritten.summarizer == "extractive"


def test_a_provider_s_wish_to_wait_longer_is_heeded(material: Material) -> None:
    pauses = Pauses()

    SummaryChain((Scripted([transient(retry_after_s=17), GOOD]),)).write(material, judge, pauses)

    assert pauses.waited == [17]


def test_a_wait_beyond_the_time_limit_is_not_begun(material: Material) -> None:
    asks = Scripted([transient(retry_after_s=3_600), GOOD])
    pauses = Pauses()

    written = SummaryChain((asks,), time_limit_s=60).write(material, judge, pauses)

    assert written.summarizer == "extractive"
    assert pauses.waited == []
    assert "3600 s more" in written.refusals[0].reason


def test_what_cannot_pass_is_not_tried_again(material: Material) -> None:
    fails = Scripted([SummarizerFailedError("no key")])

    written = SummaryChain((fails,)).write(material, judge, Pauses())

    assert len(fails.asked) == 1
    assert str(written.refusals[0]) == "scripted: no key"


def test_a_refused_draft_is_asked_for_once_more_with_the_reason(material: Material) -> None:
    mends = Scripted([BAD, GOOD])

    written = SummaryChain((mends,)).write(material, judge, Cancellation())

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

    SummaryChain((mends,)).write(material, quotes, Cancellation())

    assert "the user never said" in (mends.asked[1].instructions or "")
    assert "drop" not in (mends.asked[1].instructions or "")


def test_whoever_is_refused_twice_makes_way(material: Material) -> None:
    bad = Scripted([BAD])
    heard = Heard()

    written = SummaryChain((bad,)).write(material, judge, Cancellation(), heard)

    assert len(bad.asked) == 2
    assert written.summarizer == "extractive"
    assert heard.begun == ["scripted", "extractive"]
    assert [refusal.rule for refusal in heard.refusals] == ["made-up", "made-up"]


def test_the_end_of_the_chain_cannot_be_refused(material: Material) -> None:
    def refuses(_: Draft) -> None:
        raise RejectedSummaryError("never", "nothing is good enough")

    written = SummaryChain((Scripted([GOOD]),)).write(material, refuses, Cancellation())

    assert written.summarizer == "listing"
    assert written.draft.text
    assert [refusal.summarizer for refusal in written.refusals] == [
        "scripted",
        "scripted",
        "extractive",
    ]


def test_whatever_a_summariser_raises_is_one_line_of_the_record(material: Material) -> None:
    for error in [ValueError("x\ny"), TimeoutError("own"), KeyError("k")]:
        written = SummaryChain((Scripted([error]),)).write(material, judge, Cancellation())

        (refusal,) = written.refusals
        assert type(error).__name__ in refusal.reason, error
        assert "\n" not in str(refusal), error
        assert written.summarizer == "extractive", error


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Ends what a test left hanging."""
    event = threading.Event()
    yield event
    event.set()


@dataclass(frozen=True)
class Hangs:
    """Waits until the test ends, in an event loop or in its thread."""

    release: threading.Event
    is_asynchronous: bool
    begins: Callable[[], object] = lambda: None
    name: str = "hangs"

    def summarize(self, _: Material) -> Draft | Awaitable[Draft]:
        self.begins()
        return self.awaits() if self.is_asynchronous else self.blocks()

    async def awaits(self) -> Draft:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    def blocks(self) -> Draft:
        self.release.wait()
        return GOOD


def test_one_that_hangs_is_left_when_its_time_is_over(
    material: Material, release: threading.Event
) -> None:
    for hangs in (Hangs(release, is_asynchronous=True), Hangs(release, is_asynchronous=False)):
        written = SummaryChain((hangs,), time_limit_s=0.2).write(material, judge, Cancellation())

        assert written.summarizer == "extractive", hangs
        assert "longer than its 0.2 seconds" in written.refusals[0].reason, hangs


def test_cancelling_ends_the_wait_for_one_that_hangs(
    material: Material, release: threading.Event, subtests: pytest.Subtests
) -> None:
    for kind in (True, False):
        cancellation = Cancellation()
        asks = threading.Timer(0.0, cancellation.request).start
        hangs = Hangs(release, is_asynchronous=kind, begins=asks)

        with subtests.test(str(hangs)), pytest.raises(CompactionCancelledError):
            SummaryChain((hangs,)).write(material, judge, cancellation)


def test_what_was_cancelled_before_is_never_begun(material: Material) -> None:
    cancellation, asked = Cancellation(), Scripted([GOOD])
    cancellation.request()

    with pytest.raises(CompactionCancelledError):
        SummaryChain((asked,)).write(material, judge, cancellation)

    assert asked.asked == []


def test_it_works_inside_a_running_event_loop(material: Material) -> None:
    async def agent() -> str:
        chain = SummaryChain((Scripted([GOOD]),))
        return chain.write(material, judge, Cancellation()).summarizer

    assert asyncio.run(agent()) == "scripted"


# What a plan wants where no summary can be had


def test_where_the_plan_wants_a_notice_nobody_else_stands_in(material: Material) -> None:
    heard, fails = Heard(), Scripted([SummarizerFailedError("no such model")])

    written = SummaryChain((fails,)).write(material, judge, Cancellation(), heard, OnFailure.NOTICE)

    assert heard.begun == ["scripted", "notice"]
    assert written.draft.text.startswith("[Context Pruned: Removed 40 ")
    assert [refusal.summarizer for refusal in written.refusals] == ["scripted"]


def test_where_the_plan_wants_the_view_unchanged_it_is_said_who_failed(material: Material) -> None:
    heard, fails = Heard(), Scripted([SummarizerFailedError("no such model")])

    with pytest.raises(UnwrittenError, match="scripted: no such model"):
        SummaryChain((fails,)).write(material, judge, Cancellation(), heard, OnFailure.UNCHANGED)

    assert heard.begun == ["scripted"]


def test_who_is_asked_to_write_by_rules_does_so_whatever_the_plan_wants(material: Material) -> None:
    for others in [(), (Scripted([SummarizerFailedError("gone")]),)]:
        for on_failure in [OnFailure.NOTICE, OnFailure.UNCHANGED]:
            named: tuple[Summarizer, ...] = (*others, ExtractiveSummarizer()) if others else ()

            written = SummaryChain(named).write(
                material, judge, Cancellation(), on_failure=on_failure
            )

            assert written.summarizer == "extractive", (on_failure, others)
