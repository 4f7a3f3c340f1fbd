"""What a program that uses OpenTelemetry sees of a compaction: whole trees of spans."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from clock import Clock
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import StatusCode
from telemetry_seen import Branch, Seen

import cutbank
from cutbank import AsyncAgentLoop, Block, CompactionOptions, LoopOptions, StoredSession, Usage
from cutbank.adapters.runtime.compaction.background import Cancellation
from cutbank.adapters.runtime.compaction.options import CompactionRequest
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.open_telemetry import USAGE_TOKEN_KINDS
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import (
    CompactionCancelledError,
    CompactionVetoedError,
    LeaseHeldError,
    LeaseLostError,
    NothingToCompactError,
    StalePlanError,
    StorageError,
)
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind, HookAnswer
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.summarizer import Draft, Material

POLICY = ReserveHeadroom(reserve_tokens=7_000, keep_tokens=500)
HOW: dict[str, Any] = {"policy": POLICY, "limit": 8_000}
SUMMARY: Branch = ("cutbank.compact", [("cutbank.summarise", [])])
"""A compaction with its one summary."""

USAGE = Usage(input=900, cache_read=100, output=50)
GOOD = Draft("A summary of sesame.", model="small", usage=USAGE, cost_usd=0.002)
CUT_OFF = Draft("Sesame", model="small", usage=USAGE, cost_usd=0.001, was_truncated=True)


@dataclass
class Scripted:
    """Does one thing after another."""

    steps: list[Draft | Exception | Callable[[], object]]
    name: str = "scripted"
    asked: int = 0

    async def summarize(self, material: Material) -> Draft:
        step = self.steps[min(self.asked, len(self.steps) - 1)]
        self.asked += 1
        if isinstance(step, Exception):
            raise step
        if isinstance(step, Draft):
            return step
        step()
        return GOOD


def status(seen: Seen) -> list[StatusCode]:
    return [span.status.status_code for span in seen.spans]


def test_a_compaction_is_a_span_with_one_below_it_for_its_summary(
    talk: StoredSession, seen: Seen
) -> None:
    before = talk.view()
    outcome = talk.compact(**HOW, options=CompactionOptions(summarizers=[Scripted([GOOD])]))

    assert seen.tree() == [SUMMARY]
    assert seen.named("cutbank.compact") == [
        {
            "gen_ai.conversation.id": "a session",
            "cutbank.namespace": "default",
            "cutbank.lineage": "main",
            "cutbank.trigger": "manual",
            "cutbank.policy": "reserve-headroom",
            "cutbank.limit": 8_000,
            "cutbank.tokens.before": outcome.pre_tokens,
            "cutbank.tokens.after": outcome.post_tokens,
            "cutbank.blocks.before": len(before.entries),
            "cutbank.blocks.after": len(talk.view().entries),
            "cutbank.boundary": outcome.boundary,
            "cutbank.summariser": "scripted",
            "cutbank.compaction.outcome": "compacted",
        }
    ]
    assert seen.named("cutbank.summarise") == [
        {
            "cutbank.summariser": "scripted",
            "gen_ai.response.model": "small",
            "gen_ai.usage.input_tokens": 1_000,
            "gen_ai.usage.cache_read.input_tokens": 100,
            "gen_ai.usage.output_tokens": 50,
            "cutbank.cost": 0.002,
            "cutbank.summary.outcome": "accepted",
        }
    ]
    assert status(seen) == [StatusCode.UNSET, StatusCode.UNSET]


def test_what_fails_says_the_kind_of_error_and_no_more(
    talk: StoredSession, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise StorageError("the disk is full of sesame")

    monkeypatch.setattr(type(talk.log.compactor().decisions), "record_boundary", fails)
    scripted = Scripted([ValueError("open sesame")])
    with pytest.raises(StorageError):
        talk.compact(**HOW, options=CompactionOptions(summarizers=[scripted]))

    root, summary, extractive = seen.spans
    for span in (root, summary):
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
        assert not span.events
    assert summary.attributes == {
        "cutbank.summariser": "scripted",
        "cutbank.summary.outcome": "failed",
        "error.type": "ValueError",
    }
    assert root.attributes
    assert root.attributes["error.type"] == "StorageError"
    assert root.attributes["cutbank.compaction.outcome"] == "failed"
    assert extractive.status.status_code is StatusCode.UNSET


def test_a_cancelled_compaction_ends_its_spans_and_is_no_error(
    talk: StoredSession, seen: Seen
) -> None:
    cancellation = Cancellation()
    scripted = Scripted([CUT_OFF, cancellation.request])
    options = CompactionOptions(summarizers=[scripted], cancellation=cancellation)

    with pytest.raises(CompactionCancelledError):
        talk.compact(**HOW, options=options)

    assert seen.tree() == [SUMMARY]
    (root,), (summary,) = seen.named("cutbank.compact"), seen.named("cutbank.summarise")
    assert root["cutbank.compaction.outcome"] == "cancelled"
    assert summary["cutbank.summary.outcome"] == "cancelled"
    assert status(seen) == [StatusCode.UNSET, StatusCode.UNSET]
    assert not trace.get_current_span().get_span_context().is_valid


def test_what_comes_to_nothing_says_why(
    store: cutbank.SessionStore, session: StoredSession, talk: StoredSession, seen: Seen
) -> None:
    short = store.session("short")
    short.append(Block.user("Hello."))
    short.compact(**HOW, options=CompactionOptions(trigger=Trigger.THRESHOLD))
    with pytest.raises(NothingToCompactError):
        short.compact(**HOW)
    store.listeners.append(lambda _: HookAnswer(veto="not now"))
    with pytest.raises(CompactionVetoedError):
        talk.compact(**HOW)
    store.listeners.clear()
    for _ in range(2):
        talk.compact(**HOW, options=CompactionOptions(activate=False, idempotency_key="once"))

    talk.append(*(Block.user("sesame " * 400) for _ in range(20)))
    talk.compact(
        **HOW, options=CompactionOptions(summarizers=[Scripted([lambda: talk.compact(**HOW)])])
    )

    assert [one["cutbank.compaction.outcome"] for one in seen.named("cutbank.compact")] == [
        "no_need",
        "nothing_to_gain",
        "vetoed",
        "prepared",
        "done_before",
        "overtaken",
        "compacted",
    ]
    assert set(status(seen)) == {StatusCode.UNSET}
    # The last one was begun by what the summarizer of the one before did: it stands below it.
    assert seen.tree()[-1] == ("cutbank.compact", [("cutbank.summarise", [SUMMARY])])


def test_what_a_summarizer_traces_in_its_thread_stands_below_its_span(
    talk: StoredSession, seen: Seen
) -> None:
    tracer = seen.tracers.get_tracer("a provider's client")

    async def asks() -> Draft:
        with tracer.start_as_current_span("chat small"):
            return GOOD

    class Traces:
        name = "traces"

        async def summarize(self, material: Material) -> Draft:
            return await asyncio.create_task(asks())

    async def turn() -> None:
        loop = talk.loop(**HOW, options=LoopOptions(summarizers=[Traces()]))
        with tracer.start_as_current_span("an agent's turn"):
            await AsyncAgentLoop(loop).prepare()

    asyncio.run(turn())

    summary: Branch = ("cutbank.summarise", [("chat small", [])])
    assert seen.tree() == [("an agent's turn", [("cutbank.compact", [summary])])]


def test_whatever_ends_a_compaction_the_caller_s_span_is_current_again(
    talk: StoredSession, seen: Seen, store: cutbank.SessionStore
) -> None:
    current: list[trace.Span] = []

    def interrupts(happening: CompactionEvent) -> None:
        if happening.moment is CompactionEventKind.SUMMARIZING:
            current.append(trace.get_current_span())
            raise KeyboardInterrupt

    store.listeners.append(interrupts)
    with (
        seen.tracers.get_tracer("an agent").start_as_current_span("a turn") as turn,
        pytest.raises(KeyboardInterrupt),
    ):
        talk.compact(**HOW)

    (inner,) = current
    assert isinstance(inner, ReadableSpan)
    assert inner.name == "cutbank.summarise"
    assert turn.get_span_context().is_valid
    assert not trace.get_current_span().get_span_context().is_valid
    assert seen.named("cutbank.compact")[0]["error.type"] == "KeyboardInterrupt"


def test_telemetry_that_fails_stops_nothing(
    talk: StoredSession,
    seen: Seen,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(*_: Any, **__: Any) -> None:
        raise RuntimeError("a processor's own fault")

    processor = SpanProcessor()
    monkeypatch.setattr(processor, "on_start", breaks)
    monkeypatch.setattr(processor, "on_end", breaks)
    seen.tracers.add_span_processor(processor)

    outcome = talk.compact(**HOW, options=CompactionOptions(summarizers=[Scripted([CUT_OFF])]))

    assert outcome.compacted
    assert outcome.summarizer == "extractive"
    assert "a processor's own fault" in caplog.text
    assert not trace.get_current_span().get_span_context().is_valid


THEIRS = {
    value
    for module in (gen_ai_attributes, error_attributes)
    for value in vars(module).values()
    if isinstance(value, str)
}
OURS = re.compile(r"cutbank(\.[a-z][a-z_]*)+")


def test_names_are_known_or_ours_and_nothing_that_was_said_is_told(
    talk: StoredSession, store: cutbank.SessionStore, seen: Seen
) -> None:
    usage = Usage(input=1, cache_read=2, cache_write=3, output=4, reasoning=5)
    summarizers = (
        Scripted([Draft('{"name": "sesame", "arguments": {}}')], "calls"),
        Scripted([Draft("Sesame of #9999.", cites=Ranges.of([9_999]))], "cites"),
        Scripted([RuntimeError("sesame")], "fails"),
        Scripted([replace(GOOD, usage=usage)], "writes"),
    )
    chain = SummaryChain(summarizers)
    options = CompactionOptions(instructions="Mind the sesame.", chain=chain)
    talk.compact(**HOW, options=options)
    store.listeners.append(lambda _: HookAnswer(veto="sesame"))
    talk.append(*(Block.user("sesame " * 400) for _ in range(20)))
    with pytest.raises(CompactionVetoedError):
        talk.compact(**HOW)

    told = "".join(span.to_json() for span in seen.spans) + str(seen.measured())
    assert len(seen.spans) == 6
    assert "sesame" not in told.lower()
    attributes = [span.attributes or {} for span in seen.spans]
    attributes += [event.attributes or {} for span in seen.spans for event in span.events]
    measured = [about for points in seen.measured().values() for about, _ in points]
    names = {name for one in (*attributes, *measured) for name in one}
    assert names >= {*USAGE_TOKEN_KINDS, "error.type", "gen_ai.usage.reasoning.output_tokens"}
    assert not [name for name in names if name not in THEIRS and not OURS.fullmatch(name)]
    values = [value for span in seen.spans for value in (span.attributes or {}).values()]
    assert {type(value) for value in values} == {str, int, float}


def test_workers_that_hold_and_lose_a_lease_say_so(
    talk: StoredSession, seen: Seen, clock: Clock
) -> None:
    def order(by: str, *summarizers: Scripted) -> CompactionRequest:
        chain = SummaryChain(summarizers)
        return CompactionRequest(POLICY, 8_000, Trigger.IDLE, by=by, lease_s=60, chain=chain)

    def others_look_twice() -> None:
        with pytest.raises(LeaseHeldError):
            talk.log.compactor().compact(order("second"))
        clock.now += timedelta(hours=1)
        talk.log.compactor().compact(order("third"))

    with pytest.raises(LeaseLostError):
        talk.log.compactor().compact(order("first", Scripted([others_look_twice])))
    with pytest.raises(StalePlanError):
        talk.log.compactor().compact(replace(order("late"), found_at=0))

    outcomes = [one["cutbank.compaction.outcome"] for one in seen.named("cutbank.compact")]
    assert outcomes == ["lease_lost", "lease_held", "compacted", "overtaken"]
    assert set(status(seen)) == {StatusCode.UNSET}
    # It was paid for, whoever has no use for it.
    assert seen.named("cutbank.summarise")[0]["cutbank.cost"] == 0.002
