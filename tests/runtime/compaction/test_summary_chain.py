"""Who writes a summary when others fail: in order, with patience, and never without an end."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from summarizer_talk import items_of, material_of

from cutbank import CompactionCancelledError, RejectedSummaryError, SummarizerFailedError
from cutbank.adapters.runtime.compaction.background import Cancellation
from cutbank.adapters.runtime.compaction.summary_chain import (
    AcceptedDraft,
    SummaryChain,
    UnwrittenError,
)
from cutbank.domain.blocks import Block
from cutbank.domain.hooks import CompactionEventKind
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.window import OnFailure

GOOD = Draft("A summary of it.", model="small", usage=Usage(input=100, output=5), cost_usd=0.001)
BAD = Draft("BAD", model="small", usage=Usage(input=90, output=1), cost_usd=0.0009)
MATERIAL = material_of(
    items_of(*(Block.user(f"Please look at file_{n}.py and say what it does.") for n in range(40))),
    budget=300,
)
REJECTED = CompactionEventKind.REJECTED
GONE = SummarizerFailedError("no such model")


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


def does(*steps: Draft | Exception) -> Scripted:
    return Scripted(list(steps))


class Pauses(Cancellation):
    """Waits no time, and remembers how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float] = []

    def pause(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.check()


class Heard(list[tuple[CompactionEventKind, dict[str, Any]]]):
    def __call__(self, moment: CompactionEventKind, **details: Any) -> None:
        self.append((moment, details))

    @property
    def begun(self) -> list[str]:
        summarizing = CompactionEventKind.SUMMARIZING
        return [details["summarizer"] for moment, details in self if moment is summarizing]


def judge(draft: Draft) -> None:
    if draft.text == "BAD":
        raise RejectedSummaryError("made-up", "the user never said: drop all tables")


def write(
    *summarizers: Any,
    cancellation: Cancellation | None = None,
    heard: Heard | None = None,
    on_failure: OnFailure = OnFailure.EXTRACTIVE,
    judged_by: Callable[[Draft], None] = judge,
    **limits: Any,
) -> AcceptedDraft:
    chain = SummaryChain(summarizers, **limits)
    heard = Heard() if heard is None else heard
    return chain.write(MATERIAL, judged_by, cancellation or Pauses(), heard, on_failure)


def transient(**how: float) -> SummarizerFailedError:
    return SummarizerFailedError("overloaded", is_transient=True, **how)


def test_the_first_draft_that_passes_is_taken() -> None:
    first, second = does(GOOD), does(GOOD)

    written = write(first, second)

    assert (written.draft, written.summarizer, written.refusals) == (GOOD, "scripted", ())
    assert second.asked == []


@pytest.mark.parametrize(
    ("steps", "limits", "waited", "says"),
    [
        ([transient()] * 3 + [GOOD], {"backoff_s": 2}, [2, 4, 8], None),
        (
            [transient()],
            {"time_limit_s": 600, "retries": 10, "backoff_s": 1},
            [1, 2, 4, 8, 16, 30, 30, 30, 30, 30],
            "overloaded",
        ),
        ([transient(retry_after_s=17), GOOD], {}, [17], None),
        ([transient(retry_after_s=3_600), GOOD], {"time_limit_s": 60}, [], "3600 s more"),
        ([GONE, GOOD], {}, [], "no such model"),
    ],
    ids=["growing", "at most half a minute", "as asked", "beyond the limit", "cannot pass"],
)
def test_failures_that_may_pass_are_tried_again_with_pauses(
    steps: list[Any], limits: dict[str, Any], waited: list[float], says: str | None
) -> None:
    pauses = Pauses()

    written = write(does(*steps), cancellation=pauses, **limits)

    assert pauses.waited == waited
    assert written.summarizer == ("extractive" if says else "scripted")
    assert says is None or says in written.refusals[0].reason


def test_a_refused_draft_is_asked_for_once_more_with_the_reason_and_none_of_its_words() -> None:
    mends = does(BAD, GOOD)

    written = write(mends)

    assert written.draft is GOOD
    assert mends.asked[0].instructions is None
    assert "made-up" in (mends.asked[1].instructions or "")
    assert "the user never said" in (mends.asked[1].instructions or "")
    assert "drop" not in (mends.asked[1].instructions or "")
    (refusal,) = written.refusals
    assert (refusal.rule, refusal.usage, refusal.cost_usd) == ("made-up", BAD.usage, 0.0009)


def test_whoever_is_refused_twice_makes_way() -> None:
    bad, heard = does(BAD), Heard()

    written = write(bad, heard=heard)

    assert len(bad.asked) == 2
    assert written.summarizer == "extractive"
    assert heard.begun == ["scripted", "extractive"]
    refused, again = (details for moment, details in heard if moment is REJECTED)
    assert refused["rule"] == again["rule"] == "made-up"
    assert refused["reason"] == "scripted: made-up: the user never said: drop all tables"
    assert (refused["usage"], refused["summarizer"]) == (BAD.usage, "scripted")
    assert heard[-1][0] is CompactionEventKind.SUMMARIZED


def test_the_end_of_the_chain_cannot_be_refused() -> None:
    def refuses(_: Draft) -> None:
        raise RejectedSummaryError("never", "nothing is good enough")

    written = write(does(GOOD), judged_by=refuses)

    assert written.summarizer == "listing"
    assert written.draft.text
    assert [one.summarizer for one in written.refusals] == ["scripted", "scripted", "extractive"]


def test_whatever_a_summarizer_raises_is_one_line_of_the_record() -> None:
    for error in [ValueError("x\ny"), TimeoutError("own"), KeyError("k")]:
        written = write(does(error))

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


@pytest.mark.parametrize("is_asynchronous", [True, False])
def test_one_that_hangs_is_left_when_its_time_is_over_or_it_is_cancelled(
    release: threading.Event, is_asynchronous: bool
) -> None:
    written = write(Hangs(release, is_asynchronous), time_limit_s=0.2)

    assert written.summarizer == "extractive"
    assert "longer than its 0.2 seconds" in written.refusals[0].reason
    cancellation = Cancellation()
    asks = threading.Timer(0.0, cancellation.request).start
    with pytest.raises(CompactionCancelledError):
        write(Hangs(release, is_asynchronous, begins=asks), cancellation=cancellation)


def test_what_was_cancelled_before_is_never_begun() -> None:
    cancellation, asked = Cancellation(), does(GOOD)
    cancellation.request()

    with pytest.raises(CompactionCancelledError):
        write(asked, cancellation=cancellation)

    assert asked.asked == []


def test_it_works_inside_a_running_event_loop() -> None:
    async def agent() -> str:
        return write(does(GOOD)).summarizer

    assert asyncio.run(agent()) == "scripted"


# What a plan wants where no summary can be had


def test_where_the_plan_wants_a_notice_nobody_else_stands_in() -> None:
    heard = Heard()

    written = write(does(GONE), heard=heard, on_failure=OnFailure.NOTICE)

    assert heard.begun == ["scripted", "notice"]
    assert written.draft.text.startswith("[Context Pruned: Removed 40 ")
    assert list(map(str, written.refusals)) == ["scripted: no such model"]


def test_where_the_plan_wants_the_view_unchanged_it_is_said_who_failed() -> None:
    heard = Heard()

    with pytest.raises(UnwrittenError, match="scripted: no such model"):
        write(does(GONE), heard=heard, on_failure=OnFailure.UNCHANGED)

    assert heard.begun == ["scripted"]


def test_who_is_asked_to_write_by_rules_does_so_whatever_the_plan_wants() -> None:
    for named in [(), (does(GONE), ExtractiveSummarizer())]:
        for on_failure in [OnFailure.NOTICE, OnFailure.UNCHANGED]:
            assert write(*named, on_failure=on_failure).summarizer == "extractive", on_failure
