"""What seed 001 says of a running agent, claim by claim, on a real store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_talk import talk
from clock import Clock

import cutbank
from cutbank import Block, SessionStore, Settings, StoredSession, ToolCall, ToolResult, verify
from cutbank.adapters.runtime.agent_loop import AgentLoop
from cutbank.adapters.runtime.compaction.from_settings import make_compaction_request
from cutbank.adapters.runtime.compaction.hook_commands import to_hook_input
from cutbank.adapters.runtime.sessions.context_meter import ContextMeasurement, measure_context
from cutbank.adapters.settings.compaction_settings import (
    CompactionSettings,
    ContextSettings,
    PinSettings,
)
from cutbank.adapters.settings.load_settings import load_settings
from cutbank.domain.blocks import Media, Text
from cutbank.domain.context_limit import Utilization
from cutbank.domain.errors import InvalidSettingError
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind
from cutbank.domain.policies.layered import Layered
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.policies.scored_pruning import ScoredPruning
from cutbank.domain.trims import count_byte_tokens

POLICY = ScoredPruning(reserved_system_tokens=0, reserved_response_tokens=0)
UNPINNED = PinSettings(first_prompt=False, kinds=())


def measured(session: StoredSession, limit: int = 1_000_000) -> ContextMeasurement:
    return measure_context(session, limit=limit)


def level(session: StoredSession) -> Utilization:
    """What the policy takes to be in use."""
    order = make_compaction_request(session.log.settings, None, limit=1_000_000)
    return POLICY.measure_level(session.log.compactor().take_snapshot(order).window)


def loop_at(session: StoredSession, share: float) -> AgentLoop:
    """A loop whose model is that full."""
    return session.loop(policy=POLICY, limit=int(measured(session).in_use.tokens / share))


# The meter


@pytest.mark.claim("S1.1")
def test_every_append_is_counted(session: StoredSession) -> None:
    before = measured(session).in_use.tokens
    for block in (
        Block.user("u" * 40),
        Block.assistant("a" * 40),
        ToolCall(tool_call_id="c", name="bash", arguments={"command": "ls"}),
        ToolResult(tool_call_id="c", content="r" * 40),
    ):
        session.append(block)
        now = measured(session).in_use.tokens
        assert now > before
        before = now


@pytest.mark.claim("S1.21", "S1.38")
def test_the_system_prompt_is_neither_counted_nor_touched(session: StoredSession) -> None:
    talk(session, 8, calls=1)
    before, meter_before = level(session), measured(session).in_use
    prompt = "You are brief. " * 500

    session.configure(system_prompt=prompt)

    assert level(session) == before
    # The meter tells what the next prompt takes, as all verbs do.
    assert measured(session).in_use.tokens > meter_before.tokens
    view = loop_at(session, 3.0).prepare()
    assert view.boundary is not None
    assert view.system_prompt == prompt


# The loop


@pytest.mark.claim("S1.11", "S1.23", "S1.31")
def test_at_75_percent_listeners_are_warned(
    session: StoredSession, told: list[CompactionEvent]
) -> None:
    talk(session, 8, calls=1)
    loop = loop_at(session, 0.75)

    view = loop.prepare()

    assert view.boundary is None
    assert [event.moment for event in told] == [CompactionEventKind.CONTEXT_WARNING]
    tokens, limit = measured(session).in_use.tokens, loop.request.limit
    warning = {
        "type": "context_warning",
        "utilization": tokens / limit,
        "total_tokens": tokens,
        "max_tokens": limit,
    }
    assert told[0].message == warning
    assert to_hook_input(told[0])["message"] == warning
    assert to_hook_input(told[0])["hook_event_name"] == "ContextWarning"


@pytest.mark.claim("S1.12", "S1.24", "S1.29", "S1.30", "S1.32", "S1.36")
def test_at_85_percent_it_prunes_and_then_says_so(
    session: StoredSession, told: list[CompactionEvent]
) -> None:
    talk(session, 8, calls=1)
    before, blocks = measured(session).in_use.tokens, len(session.view().entries)
    assert measured(session).notice is None
    loop = loop_at(session, 0.85)

    view = loop.prepare()

    left = blocks - len(view.entries)
    notice = f"Context Pruned: Removed {left} old messages to stay within context limits"
    assert measured(session).notice == notice
    assert view.summary is not None
    assert view.summary.text == f"[{notice}]"
    order = [
        CompactionEventKind.RECORDED,
        CompactionEventKind.ACTIVATED,
        CompactionEventKind.CONTEXT_PRUNED,
        CompactionEventKind.SESSION_START,
    ]
    assert [event.moment for event in told][-4:] == order
    assert CompactionEventKind.CONTEXT_WARNING not in [event.moment for event in told]
    pruned = next(event.message for event in told if event.moment is order[2])
    assert pruned is not None
    after = measured(session, loop.request.limit).in_use
    assert pruned == {
        "type": "context_pruned",
        "messages_removed": left,
        "utilization_before": before / loop.request.limit,
        "utilization_after": pytest.approx(after.share, abs=0.05),
        "tokens_freed": pytest.approx(before - after.tokens, rel=0.1),
    }
    assert pruned["utilization_after"] < 0.8
    assert after.share < 0.8


# Settings


@pytest.mark.claim("S1.9")
def test_settings_are_read_from_the_section_context(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    named = "compaction_threshold = 0.70\nprotected_turns = 5\ncooldown_seconds = 30\n"
    file.write_text(f"[context]\n{named}max_tool_response_tokens = 1_000", encoding="utf-8")

    settings = load_settings(file, environ={"CUTBANK_CONTEXT_PROTECTED_TURNS": "6"})

    expected = ScoredPruning(compaction_threshold=0.7, protected_turns=6, cooldown_seconds=30.0)
    assert settings.policy == expected
    assert settings.context is not None
    assert settings.context.max_tool_response_tokens == 1_000
    file.write_text("[context]\nenabled = false\n", encoding="utf-8")
    assert load_settings(file, environ={}).policy == ScoredPruning(enabled=False)
    assert load_settings(environ={}).policy == Layered()


def test_a_policy_that_is_named_goes_before_the_section() -> None:
    context = ContextSettings(protected_turns=5)
    named = CompactionSettings(policy="qbit", settings={"protected_turns": 9})

    other = Settings(context=context, compaction=CompactionSettings(policy="reserve-headroom"))
    assert other.policy == ReserveHeadroom()
    same = Settings(context=context, compaction=CompactionSettings(policy="qbit"))
    assert same.policy == ScoredPruning(protected_turns=5)
    assert Settings(context=context, compaction=named).policy == ScoredPruning(protected_turns=9)


def test_mistakes_in_the_section_are_said(tmp_path: Path, subtests: pytest.Subtests) -> None:
    rows: list[tuple[str, str]] = [
        ("[context]\nenabled = 1", "settings.toml: context.enabled is 1; it takes true or false"),
        ("[context]\nprotected_turns = -1", "takes a whole number of turns from 0"),
        ("[context]\ncompaction_threshold = 80", "takes a fraction of the limit from 0.05 up to 1"),
        ("[context]\nmax_tool_response_tokens = 0", "a whole number of tokens from 100, or none"),
        ("[context]\ncooldown = 3", "settings.toml: context.cooldown is no setting"),
        (
            "[context]\nenabled = true\n[compaction.settings]\nkeep_tokens = 4_000",
            r"settings.toml: compaction.settings is of layered, and \[context\] asks",
        ),
    ]
    for text, mistake in rows:
        file = tmp_path / "settings.toml"
        file.write_text(text, encoding="utf-8")

        with subtests.test(str(text)), pytest.raises(InvalidSettingError, match=mistake):
            load_settings(file, environ={})


# Large tool results


@pytest.fixture
def narrow(database: str, clock: Clock) -> Iterator[SessionStore]:
    """A store that shows 100 tokens of a tool's answer."""
    context = ContextSettings(max_tool_response_tokens=100)
    settings = Settings(context=context, pins=UNPINNED)
    with cutbank.open(database, clock=clock, settings=settings) as store:
        yield store


def read_a_file(session: StoredSession, content: str) -> int:
    session.append(
        Block.user("Read it."), ToolCall(tool_call_id="c", name="read_file", arguments={})
    )
    return session.append(ToolResult(tool_call_id="c", content=content)).last


@pytest.mark.claim("S1.25")
def test_a_large_answer_is_kept_whole_and_shown_by_its_ends(narrow: SessionStore) -> None:
    heard: list[CompactionEvent] = []
    narrow.listeners.append(heard.append)
    session = narrow.session("s")
    content = "".join(f"line {number} of plain words\n" for number in range(1_000))

    at = read_a_file(session, content)

    view = session.view()
    entry = view.entries[-1]
    assert entry.position == at
    assert entry.text.startswith("line 0 of plain words\n")
    assert entry.text.endswith("line 999 of plain words\n")
    assert f"recall #{at}" in entry.text
    assert count_byte_tokens(entry.text) < 130
    assert entry.tokens < 130
    (original,) = session.recall(at)
    assert original.block.text == content
    assert [event.moment for event in heard] == [CompactionEventKind.TOOL_RESPONSE_TRUNCATED]
    assert heard[0].message == {
        "type": "tool_response_truncated",
        "tool_name": "read_file",
        "original_tokens": count_byte_tokens(content),
        "truncated_tokens": count_byte_tokens(entry.text),
    }
    assert verify(narrow).violations == []


def test_what_is_shown_of_an_answer_stays_whatever_the_settings_say_later(
    narrow: SessionStore, database: str, clock: Clock
) -> None:
    session = narrow.session("s")
    read_a_file(session, "word " * 4_000)
    before = session.view()
    session.record_call(before, call_id="1")

    with cutbank.open(database, clock=clock, settings=Settings(pins=UNPINNED)) as other:
        again = other.session("s")
        assert again.view().fingerprint == before.fingerprint == session.view().fingerprint
        assert again.view(at=before.coordinate.position).entries == before.entries
        assert verify(other).violations == []


def test_small_answers_and_images_are_shown_whole_and_a_key_used_twice_is_told_once(
    narrow: SessionStore,
) -> None:
    heard: list[CompactionEvent] = []
    narrow.listeners.append(heard.append)
    session = narrow.session("s")
    image = Media(type="image", mime="image/png", data=b"p")
    results = ["small", (Text(text="word " * 4_000), image), "word " * 4_000]
    session.append(Block.user("Look."))
    for id, content in enumerate(results):
        session.append(ToolCall(tool_call_id=f"{id}", name="look", arguments={}))
        for _ in range(2):
            session.append(ToolResult(tool_call_id=f"{id}", content=content), key=f"{id}")

    shown = [entry.shown for entry in session.view().entries[2::2]]
    assert [text is None for text in shown] == [True, True, False]
    assert [event.moment for event in heard] == [CompactionEventKind.TOOL_RESPONSE_TRUNCATED]
