"""What seed 002 promises, claim by claim, kept by the store, the loop and the command line."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from summariser_talk import always

import cutbank
from cutbank import (
    Block,
    CompactionOptions,
    LoopOptions,
    SessionStore,
    StoredSession,
)
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.models.summarizers.llm_summarizer import LlmSummarizer
from cutbank.adapters.runtime.compaction.event_sink import make_status_listener
from cutbank.adapters.runtime.compaction.from_settings import make_compaction_request
from cutbank.adapters.settings.compaction_settings import PinSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.adapters.settings.summary_settings import SummarySettings
from cutbank.domain.compaction_events import CompactionFailed
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind
from cutbank.domain.overflow import recognize_overflow
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.summaries.templates import TunacodeTemplate
from cutbank.projections.rendering.catalog import render_view

LIMIT = 8_000
SETTINGS = {"keep_recent_tokens": 2_000, "reserve_tokens": 1_000}
SUMMARY = """## Goal
- find out why the river is brown (#3)

## Progress
### Done
- asked again and again (#5)"""


@pytest.fixture
def engine() -> str:
    """What a claim says of a store it says of each database; other tests hold them equal."""
    return "sqlite"


@dataclass(frozen=True)
class Writes:
    """A summariser that answers as it is told."""

    says: Callable[[Material], Draft | Awaitable[Draft]] = lambda _: Draft(SUMMARY)
    name: str = "scripted"

    def summarize(self, material: Material) -> Draft | Awaitable[Draft]:
        return self.says(material)


def away(_: Material) -> Draft:
    raise RuntimeError("the provider is away")


def talk(session: StoredSession, turns: int) -> StoredSession:
    """Turns of about 200 tokens, and one more prompt."""
    for turn in range(turns):
        session.append(Block.user(f"question {turn} " + "why is it brown? " * 23))
        session.append(Block.assistant(f"answer {turn} " + "silt, more silt. " * 23))
    session.append(Block.user("and now?"))
    return session


@pytest.fixture
def told(store: SessionStore) -> list[CompactionEvent]:
    heard: list[CompactionEvent] = []
    store.listeners.append(heard.append)
    return heard


def moments(told: list[CompactionEvent], moment: CompactionEventKind) -> int:
    return sum(happening.moment is moment for happening in told)


# The record


@pytest.mark.claim("S2.1", "S2.23", "S2.24", "S2.42", "S2.45", "S2.46", "S2.48")
def test_a_compaction_is_kept_with_what_it_did_in_numbers_and_a_session_without_one_has_none(
    store: SessionStore, database: str
) -> None:
    session = talk(store.session("a session"), 30)
    before = session.view()
    assert (before.boundary, before.summary) == (None, None)

    outcome = session.compact(
        "tunacode", options=CompactionOptions(settings=SETTINGS, summarizers=[Writes()])
    )

    after = session.view()
    assert after.boundary is not None
    assert after.summary is not None
    assert after.summary.text == SUMMARY
    assert after.boundary.pre_tokens == outcome.pre_tokens
    assert after.boundary.post_tokens == outcome.post_tokens < outcome.pre_tokens
    assert len(outcome.left) == len(before.entries) - len(after.entries) > 0
    # What is recent stays as it was.
    assert after.entries == before.entries[-len(after.entries) :]
    with cutbank.open(database) as reopened:
        again = reopened.session("a session").view()
        assert (again.boundary, again.summary) == (after.boundary, after.summary)


# The summary


@pytest.mark.claim("S2.11")
def test_the_agents_own_model_can_write_its_summaries() -> None:
    own = "anthropic:claude-opus-4-5"
    settings = Settings(summary=SummarySettings(chain=("llm",), model=own))

    (writer, *_) = make_compaction_request(settings, "claude-opus-4-5").chain.summarizers

    assert isinstance(writer, LlmSummarizer)
    assert writer.model == own


@pytest.mark.claim("S2.10", "S2.47", "S2.49")
def test_one_request_writes_the_sections_that_the_plan_names_and_goes_on_from_the_last_summary(
    session: StoredSession,
) -> None:
    model = always(SUMMARY)
    outcomes = [
        talk(session, 30).compact(
            "tunacode",
            options=CompactionOptions(
                settings=SETTINGS, summarizers=[LlmSummarizer(model.model, by_form=True)]
            ),
        )
        for _ in range(2)
    ]

    assert [outcome.summarizer for outcome in outcomes] == ["llm", "llm"]
    first, second = model.prompts
    assert "find out why the river is brown" not in first
    assert "find out why the river is brown" in second
    assert outcomes[0].summary is not None
    assert "## Goal" in outcomes[0].summary
    assert len(TunacodeTemplate().sections) == 9
    for heading in TunacodeTemplate().sections:
        assert all(words in first for words in heading.split(": ")), heading


@pytest.mark.claim("S2.16", "S2.17", "S2.21")
def test_where_no_summary_can_be_had_the_history_stays_and_the_log_says_why(
    session: StoredSession, store: SessionStore, told: list[CompactionEvent]
) -> None:
    before = talk(session, 30).view()
    loop = session.loop(
        "tunacode", limit=LIMIT, options=LoopOptions(settings=SETTINGS, summarizers=[Writes(away)])
    )

    view = loop.prepare()

    assert (view.entries, view.boundary) == (before.entries, None)
    assert moments(told, CompactionEventKind.FAILED) == 1
    chain = store.events.find_lineage_chain("default", "a session", "main")
    failed = [event.event for event in store.events.read(chain, Ranges.span(1, 99))]
    assert any(
        isinstance(event, CompactionFailed) and "the provider is away" in event.reason
        for event in failed
    )
    # It is not paid for again before each call, but once there is more to gain.
    assert loop.prepare() == view
    assert moments(told, CompactionEventKind.REQUESTED) == 1
    talk(session, 4)
    loop.prepare()
    assert moments(told, CompactionEventKind.REQUESTED) == 2
    # Whoever cares more for room has a summary by rules stand in.
    settings = {**SETTINGS, "on_failure": "extractive"}
    stood_in = session.compact(
        "tunacode", options=CompactionOptions(settings=settings, summarizers=[Writes(away)])
    )
    assert stood_in.summarizer == "extractive"
    assert "the provider is away" in stood_in.rejected[0]


# In the loop


@pytest.mark.claim("S2.28", "S2.29", "S2.30")
def test_the_summary_that_stands_is_sent_in_front_as_a_user_message(
    session: StoredSession,
) -> None:
    talk(session, 30)
    loop = session.loop("tunacode", limit=200_000, options=LoopOptions(settings=SETTINGS))
    assert loop.prepare().summary is None

    session.compact(
        "tunacode", options=CompactionOptions(settings=SETTINGS, summarizers=[Writes()])
    )
    messages = render_view(loop.prepare(), "openai-chat")["messages"]
    session.revert()

    assert messages[0]["role"] == "user"
    assert SUMMARY in str(messages[0]["content"])
    assert str(messages).count("find out why the river is brown") == 1
    assert loop.prepare().summary is None


# After a refusal


@pytest.mark.claim("S2.34")
def test_an_overflow_is_known_by_its_words_in_any_case() -> None:
    for text in ("Context_Length_Exceeded", "the MAXIMUM CONTEXT LENGTH is 8192 tokens"):
        assert recognize_overflow({"error": {"message": text}}) is not None
    assert recognize_overflow("rate limit") is None


# Synchronous, and never after an answer


@pytest.mark.claim("S2.52")
def test_nothing_is_compacted_behind_an_answer(
    session: StoredSession, told: list[CompactionEvent]
) -> None:
    loop = session.loop("tunacode", limit=LIMIT, options=LoopOptions(settings=SETTINGS))
    view = loop.prepare()
    talk(session, 30)
    loop.record_call(view, usage=Usage(input=LIMIT, output=100), stop_reason="end_turn")

    assert told == []
    assert session.view().boundary is None
    assert loop.prepare().boundary is not None  # but before the next


# For people


@pytest.mark.claim("S2.40")
def test_a_meter_is_told_when_a_compaction_begins_and_when_it_is_over(store: SessionStore) -> None:
    shown: list[bool] = []
    store.listeners.append(make_status_listener(shown.append))
    for key, writer in (("written", Writes()), ("failed", Writes(away))):
        session = store.session(key)
        loop = session.loop(
            "tunacode", limit=LIMIT, options=LoopOptions(settings=SETTINGS, summarizers=[writer])
        )
        shown.clear()
        loop.prepare()
        assert shown == [], "as long as there is nothing to do"

        talk(session, 30)
        loop.prepare()

        assert shown == [True, False], key


@pytest.fixture
def program(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command line over a session `talk` that is large enough."""
    monkeypatch.setenv("CUTBANK_DB", database)
    with cutbank.open(database, settings=Settings(pins=PinSettings(kinds=()))) as store:
        talk(store.session("talk"), 30)

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exited:
            main(list(words))
        said = capsys.readouterr()
        assert isinstance(exited.value.code, int)
        return exited.value.code, said.out, said.err

    return run


BY_HAND = ("compact", "talk", "--policy", "tunacode", "--set", "keep_recent_tokens=2000")


@pytest.mark.claim("S2.38", "S2.41", "S2.43", "S2.44")
def test_compacting_by_hand_says_that_it_runs_and_that_it_is_done(
    program: Callable[..., tuple[int, str, str]], database: str
) -> None:
    code, out, err = program(*BY_HAND)

    assert code == 0
    assert err == "Compacting context...\n"
    assert "talk: compaction 1 on main, by retention-window" in out
    assert " tokens, " in out
    with cutbank.open(database) as store:
        assert store.session("talk").view().boundary is not None


def test_on_a_terminal_the_notice_turns_and_goes(
    program: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    code, _, err = program(*BY_HAND)

    assert code == 0
    assert "Compacting context..." in err
    assert err != "Compacting context...\n"
