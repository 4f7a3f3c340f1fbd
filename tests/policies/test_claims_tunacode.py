"""What seed 002 promises, claim by claim, kept by the store, the loop and the command line."""

import pytest
from agent_talk import Scripted, talk
from summarizer_talk import always

import cutbank
from cutbank import CompactionOptions, LoopOptions, Ranges, SessionStore, StoredSession, Usage
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.models.llm_summarizer import LlmSummarizer
from cutbank.adapters.runtime.agent_loop import AgentLoop
from cutbank.adapters.runtime.compaction.event_sink import make_status_listener
from cutbank.adapters.settings.compaction_settings import PinSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.compaction_events import CompactionFailed
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.summaries.templates import TunacodeTemplate

LIMIT = 8_000
SETTINGS = {"keep_recent_tokens": 2_000, "reserve_tokens": 1_000}
SUMMARY = """## Goal
- find out why the river is brown (#3)

## Progress
### Done
- asked again and again (#5)"""


WRITER = Scripted(lambda _: Draft(SUMMARY))


def fail(_: Material) -> Draft:
    raise RuntimeError("the provider is away")


AWAY = Scripted(fail)


def make_loop(session: StoredSession, writer: Scripted = WRITER) -> AgentLoop:
    options = LoopOptions(settings=SETTINGS, summarizers=[writer])
    return session.loop("tunacode", limit=LIMIT, options=options)


def moments(told: list[CompactionEvent], moment: CompactionEventKind) -> int:
    return sum(happening.moment is moment for happening in told)


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
    loop = make_loop(session, AWAY)

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
        "tunacode", options=CompactionOptions(settings=settings, summarizers=[AWAY])
    )
    assert stood_in.summarizer == "extractive"
    assert "the provider is away" in stood_in.rejected[0]


@pytest.mark.claim("S2.52")
def test_nothing_is_compacted_behind_an_answer(
    session: StoredSession, told: list[CompactionEvent]
) -> None:
    loop = make_loop(session)
    view = loop.prepare()
    talk(session, 30)
    loop.record_call(view, usage=Usage(input=LIMIT, output=100), stop_reason="end_turn")

    assert told == []
    assert session.view().boundary is None
    assert loop.prepare().boundary is not None  # but before the next


@pytest.mark.claim("S2.40")
def test_a_meter_is_told_when_a_compaction_begins_and_when_it_is_over(store: SessionStore) -> None:
    shown: list[bool] = []
    store.listeners.append(make_status_listener(shown.append))
    for key, writer in (("written", WRITER), ("failed", AWAY)):
        session = store.session(key)
        loop = make_loop(session, writer)
        shown.clear()
        loop.prepare()
        assert shown == [], "as long as there is nothing to do"

        talk(session, 30)
        loop.prepare()

        assert shown == [True, False], key


@pytest.mark.claim("S2.38", "S2.41", "S2.43", "S2.44")
@pytest.mark.parametrize("is_terminal", [False, True])
def test_compacting_by_hand_says_that_it_runs_and_that_it_is_done(
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    is_terminal: bool,
) -> None:
    monkeypatch.setenv("CUTBANK_DB", database)
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with cutbank.open(database, settings=Settings(pins=PinSettings(kinds=()))) as store:
        talk(store.session("talk"), 30)

    with pytest.raises(SystemExit) as exited:
        main(["compact", "talk", "--policy", "tunacode", "--set", "keep_recent_tokens=2000"])

    said = capsys.readouterr()
    assert exited.value.code == 0
    assert "Compacting context..." in said.err
    # On a terminal the notice turns, and goes.
    assert (said.err == "Compacting context...\n") is not is_terminal
    assert "talk: compaction 1 on main, by retention-window" in said.out
    assert " tokens, " in said.out
    with cutbank.open(database) as store:
        assert store.session("talk").view().boundary is not None
