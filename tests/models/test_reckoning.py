"""How much of the context is in use, by what a provider said of calls on this very view."""

from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar

import pytest

from cutbank import (
    Block,
    CompactionOptions,
    CompactionOutcome,
    SessionStore,
    StoredSession,
    ToolCall,
    ToolResult,
)
from cutbank.adapters.runtime.compaction.options import CompactionRequest
from cutbank.adapters.runtime.compaction.snapshot import SessionSnapshot
from cutbank.adapters.storage.view_reader import ViewReader
from cutbank.domain.blocks import Native
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.token_estimate import FRAME_TOKENS, ContentKind
from cutbank.domain.window import Plan, Window
from cutbank.projections.context_usage import CallSample, ContextUsageTracker
from cutbank.projections.history_view import HistoryView

SEALED = Native(provider="anthropic", item='{"signature": "' + "s" * 2_000 + '"}')


def words(tokens: int) -> str:
    return "word" * tokens


def shown(session: StoredSession, reader: ViewReader) -> Window:
    return SessionSnapshot(reader, CompactionRequest(Keep(1))).window


def window(session: StoredSession) -> Window:
    """Return what a policy is shown now, the same to a reader that follows and to a new one."""
    followed = shown(session, session.log.reader("main"))
    anew = ViewReader(session.log.events, session.namespace, session.key, "main")
    # The clock went on between the two.
    assert replace(shown(session, anew), since_boundary_s=followed.since_boundary_s) == followed
    return followed


def call(
    session: StoredSession,
    context: int | None,
    *,
    view: HistoryView | None = None,
    output: int | None = None,
    reasoning: int | None = None,
    model: str = "a-model",
) -> None:
    """Record that a model was sent the view, and what its provider reported."""
    usage = Usage(input=context, output=output, reasoning=reasoning)
    view = view or session.view()
    session.record_call(view, call_id=f"call-{session.position}", model=model, usage=usage)


@dataclass(frozen=True)
class Keep:
    """Keeps the newest blocks."""

    name: ClassVar[str] = "keep"
    newest: int

    def plan(self, window: Window) -> Plan:
        return Plan(window.items[-self.newest].position, "asked", summary_tokens=1_000)


@dataclass(frozen=True)
class Says:
    name: str = "says"

    def summarize(self, _: Material) -> Draft:
        return Draft(words(50))


def compact(session: StoredSession, keep: int) -> CompactionOutcome:
    return session.compact(Keep(keep), options=CompactionOptions(summarizers=[Says()]))


def test_what_was_reported_counts_and_what_was_appended_since_is_added(
    session: StoredSession,
) -> None:
    session.append(Block.user(words(100)))
    call(session, None)
    seen = window(session)
    assert (seen.used_tokens, seen.usage) == (100, None)

    call(session, 20_000)
    session.append(Block.user(words(300)))

    seen = window(session)
    assert seen.usage == 20_000
    assert seen.used_tokens == seen.tokens == 20_000 + 300 + FRAME_TOKENS


def test_an_answer_is_as_large_as_its_output_was_said_to_be(store: SessionStore) -> None:
    rows: list[tuple[list[Block], int | None, int | None, int]] = [
        # As reported: the log shows the words, not how the model counts them.
        ([Block.assistant(words(100))], 160, None, 160),
        # Reasoning that is not in the log is not sent again; what is sealed is.
        ([Block.assistant(words(100))], 1_160, 1_000, 160),
        ([Block.thinking("", native=SEALED), Block.assistant(words(100))], 560, 400, 560),
        # A count taken while the answer streamed, none at all, and nonsense.
        ([Block.assistant(words(100))], 1, None, 104),
        ([Block.assistant(words(100))], None, None, 104),
        ([Block.assistant(words(100))], -5, None, 104),
        ([Block.assistant(words(100))], 10**9, None, 104),
        ([], 160, None, 0),
    ]
    for answer, output, reasoning, adds in rows:
        session = store.session(f"{answer} {output}"[-60:])
        session.append(Block.user(words(100)))
        call(session, 20_000, output=output, reasoning=reasoning)

        if answer:
            session.append(*(block.model_copy(update={"message_id": "m"}) for block in answer))

        assert window(session).used_tokens == 20_000 + adds, answer


def test_only_the_first_answer_after_a_call_is_that_call_s(store: SessionStore) -> None:
    """The call that gave the second one was not reported; without ids, who speaks parts them."""
    for first, second in (("m1", "m2"), (None, None)):
        session = store.session(f"{first}")
        session.append(Block.user(words(100)))
        call(session, 20_000, output=160)
        session.append(*(Block.assistant(words(50), message_id=first) for _ in range(2)))
        session.append(Block.user(words(10)), Block.assistant(words(200), message_id=second))

        assert window(session).used_tokens == 20_000 + 160 + 10 + 200 + 2 * FRAME_TOKENS, first

    session = store.session("parallel results end no answer")
    session.append(Block.user(words(100)))
    call(session, 20_000, output=100)
    for name in "ab":
        session.append(ToolCall(tool_call_id=name, name="bash", message_id="m"))
        session.append(ToolResult(tool_call_id=name, content=words(50)))

    assert window(session).used_tokens == 20_000 + 100 + 2 * (50 + FRAME_TOKENS)


def talk(session: StoredSession, rounds: int, ratio: float, unseen: int) -> int:
    """Calls of a model that makes `ratio` tokens of each; returns what the next prompt has."""
    context = unseen + sum(entry.tokens for entry in session.view().entries) * ratio
    for _ in range(rounds):
        session.append(Block.user(words(1_000)))
        context += 1_000 * ratio
        call(session, round(context), output=round(200 * ratio))
        session.append(Block.assistant(words(200)))
        context += 200 * ratio
    return round(context)


def test_ratios_are_learned_and_every_block_is_as_large_as_the_model_has_it(
    session: StoredSession,
) -> None:
    context = talk(session, 10, 1.5, 8_000)
    learned = window(session).calibration
    session.append(Block.user(words(4_000)))

    seen = window(session)

    assert seen.used_tokens == pytest.approx(context + 6_000, rel=0.01)
    assert seen.items[-1].tokens == pytest.approx(6_000, rel=0.05)
    assert seen.tokens == pytest.approx(seen.used_tokens, abs=1)

    # Another model's tokens are others: what the context seems to grow by is no measure.
    call(session, context + 5_000, model="another")
    seen = window(session)
    assert seen.used_tokens == context + 5_000
    text = ContentKind.TEXT
    assert seen.calibration.get_ratio(text) == learned.get_ratio(text)


def test_a_call_on_the_view_that_a_boundary_ended_says_nothing_of_this_one(
    session: StoredSession,
) -> None:
    """Its summary was written while the agent went on: the old view was seen after `after`."""
    first = session.append(Block.user(words(50))).last
    talk(session, 10, 1.0, 0)
    old = session.view()
    compact(session, keep=4)

    call(session, 150_000, view=old)
    assert window(session).usage is None
    assert window(session).used_tokens < 5_000
    call(session, 4_000)
    call(session, 150_000, view=old)  # is recorded late, and hides no newer one
    assert window(session).used_tokens == 4_000

    session.retract(first)  # undoes the boundary, and ends its view
    assert session.view().boundary is None
    assert window(session).usage is None
    assert window(session).used_tokens > 11_000


def test_after_a_compaction_what_the_log_never_held_is_still_there(session: StoredSession) -> None:
    """Tools and prompts that nobody set here: the provider counts them in every call."""
    context = talk(session, 20, 1.5, 12_000)

    outcome = compact(session, keep=4)

    assert window(session).used_tokens == outcome.post_tokens
    expected = 12_000 + 1.5 * sum(entry.tokens for entry in session.view().entries)
    assert window(session).used_tokens == pytest.approx(expected + 50, rel=0.05)
    call(session, round(expected))
    assert window(session).used_tokens == round(expected)

    session.revert()  # ends what was measured on the compacted view
    assert window(session).usage is None
    assert window(session).used_tokens == pytest.approx(context, rel=0.1)


def test_sizes_stay_plain_estimates_where_no_growth_was_measured(
    session: StoredSession,
) -> None:
    session.append(Block.user(words(5_000)), Block.user(words(5_000)))
    call(session, 12_000)
    compact(session, keep=1)

    session.revert()

    sizes = [item.tokens for item in window(session).items]
    assert sizes == [entry.tokens for entry in session.view().entries]


def test_what_was_taken_back_is_not_in_use_whenever_its_call_was_recorded(
    store: SessionStore,
) -> None:
    for is_late in (False, True):
        session = store.session(f"late: {is_late}")
        session.append(Block.user(words(100)))
        asked = session.append(Block.user(words(5_000)))
        view = session.view()
        if not is_late:
            call(session, 20_000, view=view)

        session.retract(asked.last)
        if is_late:
            call(session, 20_000, view=view)

        assert window(session).used_tokens == 20_000 - 5_000 - FRAME_TOKENS, is_late

    # What was seen and is gone is no measure of the rest.
    gone = session.append(Block.user(words(5_000)))
    view = session.view()
    session.retract(gone.last)
    call(session, 21_000, view=view)
    assert not window(session).calibration.has_learned


def test_a_lie_is_not_believed_and_the_truth_is_again(store: SessionStore) -> None:
    for lie in [0, 3, 10**12]:
        session = store.session(f"{lie}")
        talk(session, 5, 1.0, 0)
        known = window(session)
        before = known.used_tokens
        session.append(Block.user(words(1_000)))

        call(session, lie)
        seen = window(session)
        assert seen.used_tokens == pytest.approx(before + 1_000, rel=0.01), lie
        assert seen.calibration == known.calibration, lie

        call(session, before + 1_050)
        assert window(session).used_tokens == before + 1_050, lie

    session = store.session("a lie that was believed")
    session.append(Block.user(words(1_000)))
    call(session, 200_000)  # could be: nobody knows what the provider adds
    session.append(Block.user(words(10)))
    call(session, 1_100)
    assert window(session).used_tokens == 1_100


def test_calls_on_another_lineage_say_nothing_and_a_fork_goes_on_from_its_parents(
    session: StoredSession,
) -> None:
    talk(session, 5, 1.0, 0)
    used = window(session).used_tokens
    assert window(session.fork("another-way")).used_tokens == used
    session.compact(Keep(4), options=CompactionOptions(summarizers=[Says()], lineage="what-if"))

    call(session, 90_000, view=session.view(lineage="what-if"))

    assert window(session).used_tokens == used


def test_prompts_that_were_set_since_are_added_and_a_message_that_grew_counts_once(
    session: StoredSession,
) -> None:
    session.configure(system_prompt=words(1_000))
    session.append(Block.user(words(100)))
    view = session.view()
    call(session, 20_000, view=view, output=1)
    session.append(Block.assistant(words(100)))
    call(session, 20_000, view=view, output=130)

    seen = window(session)
    assert (seen.used_tokens, seen.calibration.has_learned) == (20_130, False)

    session.configure(system_prompt=words(3_000))
    assert window(session).used_tokens == 22_130


@pytest.mark.parametrize("seed", range(3))
def test_who_reads_anew_knows_what_who_followed_knows(store: SessionStore, seed: int) -> None:
    """`window` compares the two after each step of any history."""
    dice, session = Random(seed), store.session("any")  # noqa: S311 - nothing here is secret
    session.append(Block.user(words(300)))
    views = [session.view()]
    for step in range(60):
        entries = session.view().entries
        match dice.choice("uuaaccctrrsSvx"):
            case "u":
                session.append(Block.user(words(dice.randint(1, 900))))
            case "a":
                answer = Block.assistant(words(dice.randint(1, 300)), message_id=f"m{step}")
                session.append(Block.thinking("", native=SEALED, message_id=f"m{step}"), answer)
            case "t":
                session.append(ToolCall(tool_call_id=f"t{step}", name="bash"))
                session.append(ToolResult(tool_call_id=f"t{step}", content=words(200)))
            case "c":
                views.append(session.view())
                view = dice.choice(views[-2:])
                call(session, int(view.tokens * dice.uniform(0.9, 2) + 5_000), view=view)
            case "r" if len(entries) > 3:
                session.retract(dice.choice(entries).position)
            case "s":
                session.configure(system_prompt=words(dice.randint(1, 500)))
            case "S" if len(entries) > 8:
                compact(session, keep=5)
            case "v" if session.view().boundary and not dice.randrange(3):
                session.revert()
            case "x" if entries:
                session.pin(entries[0].position)
            case _:
                pass
        assert window(session).used_tokens > 0


def test_a_block_that_is_taken_back_before_a_call_is_reported_was_seen_by_it(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = list[CallSample]()
    monkeypatch.setattr(ContextUsageTracker, "add_sample", lambda _, lap: samples.append(lap))
    first = session.append(Block.user(words(1_000))).last
    call(session, 1_000)
    session.append(Block.assistant(words(500)))
    seen = session.view()

    session.retract(first)
    call(session, 1_500, view=seen)
    session.view()

    assert samples[-1].call.position == seen.coordinate.position
    assert not any(sample.retracted_entries for sample in samples)
