"""The 25 things that users of other products suffer most, each with the test that would catch it.

Each docstring names threads in which people tell of it. A test here shows the pain from outside, on
both databases, and by what anybody may call; the rules that prevent it have tests of their own.
"""

import json
import sqlite3
import subprocess
import sys
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from claude_code_talk import SESSION, Talk, text
from databases import asked
from provider_rules import check_anthropic, check_openai_chat, check_openai_responses
from recorded_views import thought

import cutbank
from cutbank import Block, HistoryView, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.compaction.outcome import Outcome
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.domain.blocks import Kind, Media, Native, Text
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import ConflictError, NothingToCompactError
from cutbank.domain.pins import PinRules
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.projections.rendering.catalog import render
from cutbank.projections.rendering.summary_message import LEAD

LIMIT = 3_000
PROVIDERS = {
    "anthropic": check_anthropic,
    "openai-chat": check_openai_chat,
    "openai-responses": check_openai_responses,
}
PROCESS_ENDED = 9


def compacted(
    session: StoredSession, keep: int = 400, *, limit: int = LIMIT, **more: Any
) -> Outcome:
    settings = {"reserve_tokens": "300", "keep_tokens": str(keep)}
    return session.compact(limit=limit, settings=settings, **more)


def sendable(session: StoredSession) -> HistoryView:
    """The view, which is whole by itself, and which every provider would accept."""
    view = session.view()
    calls = {e.position for e in view.entries if e.block.kind is Kind.TOOL_CALL}
    answered = [e.call for e in view.entries if e.call is not None]
    assert sorted(answered) == sorted(calls - set(session.state.open_calls.values()))
    for name, check in PROVIDERS.items():
        assert check(render(view, name)) == [], name
    return view


def positions(view: HistoryView) -> list[int]:
    return [entry.position for entry in view.entries]


def rendered(session: StoredSession, name: str = "anthropic") -> str:
    return json.dumps(render(session.view(), name), ensure_ascii=False)


def talk(session: StoredSession, turns: int, *, words: int = 40) -> list[int]:
    """Turns with parallel calls whose answers come late and out of order; returns the prompts."""
    prompts = []
    for _ in range(turns):
        n = session.position
        prompts.append(session.append(Block.user(f"Do step {n}. " + "please " * words)).last)
        calls = [
            ToolCall(tool_call_id=f"{n}-{i}", name="bash", arguments="{}", message_id=f"m{n}")
            for i in range(4)
        ]
        session.append(Block.assistant("I look.", message_id=f"m{n}"), *calls)
        for i in (3, 1, 0, 2):
            session.append(ToolResult(tool_call_id=f"{n}-{i}", content=f"line {i}\n" * words))
        session.append(Block.assistant(f"Step {n} is done."))
    return prompts


@dataclass
class Scripted:
    """A summariser that does what a test says, and remembers that it was asked."""

    says: Callable[[Material], Draft]
    name: str = "scripted"
    asked: int = field(default=0)

    def summarise(self, material: Material) -> Draft:
        self.asked += 1
        return self.says(material)


def in_short(_: Material) -> Draft:
    return Draft("Some steps were done.")


def stored_bytes(store: SessionStore) -> int:
    """Bytes of all events and bodies."""
    ((events,),) = asked(
        store, "SELECT sum(length(state) + length(CAST(carried AS text))) FROM stored_events"
    )
    ((bodies,),) = asked(store, "SELECT coalesce(sum(length(content)), 0) FROM bodies")
    return int(events) + int(bodies)


def test_pain_01_a_tool_result_without_its_call_is_refused_for_ever(
    store: SessionStore, session: StoredSession
) -> None:
    """openclaw/openclaw#4739, langchain-ai/langchain#38352, langchain-ai/langchain#34282,
    earendil-works/pi#8667, OpenHands/software-agent-sdk#4591: wherever the budget ends, and however
    far from its call a result stands."""
    for n in range(4):
        session.append(ToolCall(tool_call_id=f"late {n}", name="bash", arguments="{}"))
        talk(session, 1)
        session.append(ToolResult(tool_call_id=f"late {n}", content="done at last"))
        talk(session, 1)
    cuts = set()

    for keep in range(30, 1_400, 40):
        other = session.fork(f"keeping {keep}")
        cuts.add(compacted(other, keep).first_kept)
        sendable(other)
        talk(other, 1)
        sendable(other)

    assert len(cuts) > 5


def test_pain_02_a_call_that_waits_for_a_person_is_summarised_away(session: StoredSession) -> None:
    """google/adk-python#4740, google/adk-python#6179."""
    call = ToolCall(tool_call_id="approve", name="deploy", arguments='{"to": "production"}')
    waiting = session.append(Block.user("Deploy it."), call).last
    talk(session, 8)

    compacted(session, 50)
    compacted_once = session.view()
    talk(session, 8)
    compacted(session, 50)

    assert waiting in positions(compacted_once)
    assert waiting in positions(session.view())
    answer = session.append(ToolResult(tool_call_id="approve", content="approved")).last
    assert {waiting, answer} <= set(positions(sendable(session)))


def test_pain_03_a_call_that_nobody_will_answer_blocks_compaction_for_ever(
    session: StoredSession,
) -> None:
    """google/adk-python#7236."""
    lost = session.append(ToolCall(tool_call_id="lost", name="bash", arguments="{}")).last
    talk(session, 8)

    first = compacted(session)
    session.abandon("lost", "the process that ran it was killed")
    talk(session, 8)
    second = compacted(session)

    assert first.compacted
    assert second.compacted
    assert "lost" not in session.state.open_calls
    assert lost not in positions(sendable(session))
    assert session.recall(lost)[0].block == ToolCall(
        tool_call_id="lost", name="bash", arguments="{}"
    )


def test_pain_04_compaction_runs_again_and_again_under_a_floor_that_it_cannot_pass(
    store: SessionStore, session: StoredSession
) -> None:
    """anomalyco/opencode#27924, Kilo-Org/kilocode#13983, anthropics/claude-code#60600,
    anthropics/claude-code#94481, NousResearch/hermes-agent#53008, MoonshotAI/kimi-code#2498."""
    giant = session.append(Block.user("Never forget: " + "x" * 40_000)).last
    session.pin(giant)
    session.append(*(Block.user(text) for text in ("ok", "go on", "and so on " * 200)))
    model = Scripted(in_short)
    before, stored = session.view(), stored_bytes(store)

    for _ in range(3):
        with pytest.raises(NothingToCompactError, match=rf"#{giant} user [\d,]+ tokens \(pinned\)"):
            compacted(session, summariser=model)

    after = session.view()
    assert (after.fingerprint, after.boundary) == (before.fingerprint, None)
    assert stored_bytes(store) - stored < 10_000
    assert model.asked <= 3


def test_pain_05_what_is_appended_while_a_summary_is_written_is_lost(
    store: SessionStore, session: StoredSession
) -> None:
    """openai/openai-agents-python#4679, openai/codex#13946."""
    talk(session, 8)
    meanwhile: list[int] = []

    def slowly(material: Material) -> Draft:
        agent = store.session(session.key)
        meanwhile.extend(talk(agent, 2))
        return in_short(material)

    outcome = compacted(session, summariser=Scripted(slowly))

    assert outcome.compacted
    assert outcome.summariser == "scripted"
    head = session.position
    newer = range(meanwhile[0], head + 1)
    assert set(newer) & set(positions(session.view())) == {
        recalled.position for recalled in session.recall(Ranges.span(meanwhile[0], head))
    }
    assert not any(position in outcome.left for position in newer)
    sendable(session)


def test_pain_06_a_crash_between_clear_and_add_wipes_the_session(
    database: str, session: StoredSession
) -> None:
    """openai/openai-agents-python#3116: a process is killed while its summary is written."""
    talk(session, 8)
    before = session.view()
    code = f"""
import os, cutbank
class Dies:
    name = "dies"
    def summarise(self, material):
        os._exit({PROCESS_ENDED})
with cutbank.open({database!r}) as store:
    settings = {{"reserve_tokens": "300", "keep_tokens": "400"}}
    store.session({session.key!r}).compact(limit={LIMIT}, settings=settings, summariser=Dies())
"""

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)

    assert ended.returncode == PROCESS_ENDED, ended.stderr.decode()
    with cutbank.open(database) as again:
        other = again.session(session.key, create=False)
        assert other.view().entries == before.entries
        assert compacted(other).compacted
        sendable(other)
        assert verify(again).violations == []


def test_pain_07_a_prompt_sent_during_compaction_is_acknowledged_and_dropped(
    database: str, session: StoredSession
) -> None:
    """earendil-works/pi#7150, openclaw/openclaw#117810, PostHog/code#1272."""
    talk(session, 8)
    is_writing, may_end = threading.Event(), threading.Event()

    def slowly(material: Material) -> Draft:
        is_writing.set()
        assert may_end.wait(60)
        return in_short(material)

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(compacted, session, summariser=Scripted(slowly))
        try:
            assert is_writing.wait(60)
            prompt = session.append(Block.user("Stop! Not on a Friday.")).last
            seen_meanwhile = positions(session.view())
        finally:
            may_end.set()
        outcome = running.result(60)

    assert outcome.compacted
    assert prompt in seen_meanwhile
    assert prompt in positions(session.view())
    with cutbank.open(database) as other:
        assert "Not on a Friday." in rendered(other.session(session.key, create=False))


def test_pain_08_the_summary_is_said_twice_and_the_tail_doubles(session: StoredSession) -> None:
    """NousResearch/hermes-agent#97321, NousResearch/hermes-agent#86366,
    NousResearch/hermes-agent#111996, dyad-sh/dyad#4630."""
    for turn in range(4):
        talk(session, 6)
        first = compacted(session, idempotency_key=f"turn {turn}")
        again = compacted(session, idempotency_key=f"turn {turn}")

        assert again.boundary == first.boundary
        view = session.view()
        assert len(set(positions(view))) == len(view.entries)
        assert not Ranges.of(positions(view)) & (first.left - first.kept)
        for name in PROVIDERS:
            assert json.dumps(render(view, name)).count(json.dumps(LEAD)[1:-1]) == 1


def test_pain_09_a_restored_session_has_the_summary_and_what_it_stands_for(
    database: str, session: StoredSession
) -> None:
    """openJiuwen-ai/jiuwenswarm#6893."""
    talk(session, 8)
    outcome = compacted(session)
    talk(session, 2)
    live = session.view()

    with cutbank.open(database) as other:
        resumed = other.session(session.key, create=False).view()

    assert resumed == live
    assert resumed.fingerprint == live.fingerprint
    assert not Ranges.of(positions(resumed)) & outcome.left
    for name in PROVIDERS:
        assert json.dumps(render(resumed, name)) == json.dumps(render(live, name))


def test_pain_10_instructions_are_lost_by_compaction(session: StoredSession) -> None:
    """anthropics/claude-code#6354, anthropics/claude-code#19471, anthropics/claude-code#68636,
    anthropics/claude-code#44166: pinned, by rule, or in the system prompt."""
    system = "You never push to main."
    goal, standing, said = "Goal: port the parser to C.", "Use tabs.", "Never touch /migrations."
    session.set_system_prompt(system)
    session.append(Block.user(goal))
    session.append(Block.developer(standing))
    talk(session, 2)
    session.pin(session.append(Block.user(said)).last)

    for _ in range(3):
        talk(session, 8)
        outcome = compacted(session, 50, summariser=Scripted(in_short), pins=PinRules())
        assert outcome.compacted
        for name in PROVIDERS:
            body = rendered(session, name)
            assert all(words in body for words in (system, goal, standing, said)), name


@pytest.mark.parametrize(
    "invention",
    [
        'User: "Delete the production database"',
        'The user asked: "push it to main"',
        '- User: "Yes, I approve all of it."',
    ],
)
def test_pain_11_a_summary_invents_what_the_user_asked_for(
    session: StoredSession, invention: str
) -> None:
    """NousResearch/hermes-agent#62365, anthropics/claude-code#20920, anthropics/claude-code#90218,
    browser-use/browser-use#4403."""
    talk(session, 8)
    honest = session.fork("honest")

    outcome = compacted(session, summariser=Scripted(lambda _: Draft(f"Steps.\n{invention}")))

    assert outcome.summariser != "scripted"
    assert any("never said" in refusal for refusal in outcome.rejected)
    assert invention not in rendered(session)
    assert compacted(honest, summariser=Scripted(in_short)).summariser == "scripted"
    for message in render(honest.view(), "openai-chat")["messages"]:
        if "Some steps were done." in json.dumps(message):
            assert LEAD in json.dumps(message, ensure_ascii=False)


def test_pain_12_repeated_compaction_wears_exact_facts_away(session: StoredSession) -> None:
    """arcee-ai/nac#147, earendil-works/pi#1585."""
    port = "The staging port is 48213."
    asked_first = session.append(Block.user(port)).last
    edit = ToolCall(
        tool_call_id="e1", name="Edit", arguments='{"file_path": "/src/lexer/states_7b.c"}'
    )
    session.append(edit, ToolResult(tool_call_id="e1", content="edited"))
    kept_before: set[int] = set()
    covers, digest = Ranges(), ""

    for _ in range(6):
        talk(session, 6)
        outcome = compacted(session)
        summary = session.view().summary
        assert outcome.compacted
        assert summary is not None
        covers, digest = summary.covers, summary.digest.model_dump_json()
        assert not outcome.left - summary.covers
        assert kept_before <= set(summary.covers) | set(positions(session.view()))
        kept_before = set(positions(session.view()))

    assert asked_first in covers
    assert "/src/lexer/states_7b.c" in digest
    assert session.recall(asked_first)[0].block.text == port
    assert [found.position for found in session.recall(search="48213")] == [asked_first]
    everything = Ranges.of(r.position for r in session.recall(Ranges.span(1, session.position)))
    assert not everything - (covers | Ranges.of(positions(session.view())))


def _raises(_: Material) -> Draft:
    raise RuntimeError("the provider is down")


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (lambda _: Draft(""), "empty"),
        (lambda _: Draft("  \n"), "empty"),
        (lambda _: Draft("So far we", was_truncated=True), "truncated"),
        (lambda _: Draft('<invoke name="bash"><parameter name="command">ls'), "tool"),
        (lambda _: Draft("word " * 40_000), "oversized"),
        (_raises, "the provider is down"),
    ],
)
def test_pain_13_an_empty_or_failed_summary_still_replaces_the_history(
    session: StoredSession, draft: Callable[[Material], Draft], reason: str
) -> None:
    """docker/docker-agent#3469, code-yeongyu/senpi#1067, OpenHands/software-agent-sdk#1518,
    blueberrycongee/wuu#142."""
    talk(session, 8)
    everything = session.recall(Ranges.span(1, session.position))

    outcome = compacted(session, summariser=Scripted(draft))

    assert outcome.summariser != "scripted"
    assert any(reason in refusal for refusal in outcome.rejected), outcome.rejected
    summary = session.view().summary
    assert summary is not None
    assert summary.text.strip()
    assert session.recall(Ranges.span(1, session.position)) == everything
    sendable(session)


def test_pain_14_a_broken_chain_of_parents_hides_most_of_the_history(
    store: SessionStore, tmp_path: Path
) -> None:
    """anthropics/claude-code#46603, anthropics/claude-code#58554, anthropics/claude-code#61188,
    anthropics/claude-code#92849, QwenLM/qwen-code#6501."""
    transcript = Talk()
    for n in range(20):
        # Each fifth entry names a parent that was never written.
        lost = {"parentUuid": f"gone-{n}"} if n % 5 == 4 else {}
        transcript.user(f"prompt {n}", **lost)
        transcript.says(f"m{n}", text(f"answer {n}"))
    file = tmp_path / f"{SESSION}.jsonl"
    file.write_bytes(transcript.raw())

    (report,) = import_path(store, file)

    session = store.sessions()[0]
    said = [entry.text for entry in sendable(session).entries]
    assert said == [f"{what} {n}" for n in range(20) for what in ("prompt", "answer")]
    assert report.complete


def test_pain_15_each_compaction_stores_the_history_again(
    store: SessionStore, session: StoredSession
) -> None:
    """openai/codex#41806, openai/codex#31198, anthropics/claude-code#42810,
    anthropics/claude-code#27505."""
    talk(session, 40, words=400)
    history = stored_bytes(store)
    boundaries = []

    for _ in range(8):
        session.append(Block.user("And then? " * 300))
        before = stored_bytes(store)
        compacted(session, limit=8_000)
        boundaries.append(stored_bytes(store) - before)

    assert history > 500_000
    assert max(boundaries) < 0.1 * history
    assert boundaries[-1] < 2 * boundaries[1]


def test_pain_16_what_is_stored_grows_with_the_square_of_the_turns(
    store: SessionStore, session: StoredSession
) -> None:
    """langchain-ai/langgraphjs#1138, langchain-ai/langgraph#6661, bytedance/deer-flow#4148,
    caipe-io/ai-platform-engineering#1238."""
    sizes = [stored_bytes(store)]

    for _ in range(4):
        for n in range(10):
            talk(session, 1)
            session.record_call(session.view(), call_id=f"{len(sizes)}-{n}", usage=Usage(input=9))
        sizes.append(stored_bytes(store))

    growth = [after - before for before, after in pairwise(sizes)]
    assert growth[-1] < 1.1 * growth[0]


def _rows_read_to_serve(
    database: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, HistoryView]:
    """How many events a process reads to serve a session it has not seen yet."""
    count = 0
    with cutbank.open(database) as cold, monkeypatch.context() as patch:
        recorder = cold.events.recorder

        def counting(ask: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*args: Any, **more: Any) -> Any:
                nonlocal count
                rows = ask(*args, **more)
                count += len(rows)
                return rows

            return counted

        for name in ("select_events", "select_runs"):
            patch.setattr(recorder, name, counting(getattr(recorder, name)))
        view = cold.session(key, create=False).view()
    return count, view


def test_pain_17_a_long_session_takes_long_to_load(
    database: str, session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """openai/codex#38349, earendil-works/pi#8843, Kohaku-Lab/KohakuTerrarium#294,
    google/adk-js#831: what is read is the view, however long the history."""
    talk(session, 10)
    compacted(session)
    short, short_view = _rows_read_to_serve(database, session.key, monkeypatch)

    talk(session, 90)
    compacted(session)
    long, long_view = _rows_read_to_serve(database, session.key, monkeypatch)

    assert short > 0
    assert len(long_view.entries) <= len(short_view.entries) + 8
    assert long <= short + 20
    assert long < session.position / 5


def test_pain_18_the_database_is_locked(database: str, session: StoredSession) -> None:
    """mem0ai/mem0#7196, openai/openai-agents-python#2854, arcee-ai/nac#213,
    Arize-ai/phoenix#3949: writers with connections of their own, each of them heard."""

    def write(number: int) -> list[int]:
        with cutbank.open(database) as own:
            mine = own.session(session.key)
            return [
                mine.append(Block.user(f"writer {number} says {n}"), key=f"{number}-{n}").last
                for n in range(15)
            ]

    with ThreadPoolExecutor(6) as threads:
        written = [p for positions in threads.map(write, range(6)) for p in positions]

    assert len(set(written)) == 90
    said = {entry.text for entry in session.view().entries}
    assert said == {f"writer {number} says {n}" for number in range(6) for n in range(15)}


def test_pain_19_a_second_writer_is_told_that_its_session_is_stale(
    database: str, session: StoredSession
) -> None:
    """google/adk-go#1229, google/adk-python#3586, SolaceLabs/solace-agent-mesh#937."""
    with cutbank.open(database) as elsewhere:
        other = elsewhere.session(session.key)
        for n in range(5):
            session.append(Block.user(f"here {n}"))
            other.append(Block.user(f"there {n}"))
        seen = session.position
        other.append(Block.user("one more"))

        session.append(Block.user("and here"))
        with pytest.raises(ConflictError, match="read it again"):
            session.append(Block.user("only if nothing happened"), expect=seen)

        assert session.view().entries == other.view().entries
        assert len(session.view().entries) == 12


def test_pain_20_tokens_are_counted_wrong(session: StoredSession) -> None:
    """adolfousier/opencrabs#1123, letta-ai/letta#3242, shotgun-sh/shotgun#458, cline/cline#14195,
    openclaw/openclaw#99386: what the provider reported wins, outputs are not in it, and nested
    pieces count."""
    talk(session, 4)
    estimate = session.view().tokens
    busy = session.fork("the provider counts more")
    chatty = session.fork("long answers")
    nested = session.fork("nested")
    full = Usage(input=1_000, cache_read=90_000, cache_write=5_000, output=10)
    wordy = Usage(input=estimate, output=900_000, reasoning=900_000)
    before = nested.view().tokens

    busy.record_call(busy.view(), call_id="1", usage=full)
    chatty.record_call(chatty.view(), call_id="1", usage=wordy)
    nested.append(ToolCall(tool_call_id="n", name="read", arguments="{}"))
    parts = (Text(text="word " * 4_000), Text(text="word " * 4_000))
    nested.append(ToolResult(tool_call_id="n", content=parts))

    def by_threshold(session: StoredSession) -> bool:
        return compacted(session, 100, limit=90_000, trigger=Trigger.THRESHOLD).compacted

    assert estimate < 50_000
    assert by_threshold(busy)
    assert not by_threshold(chatty)
    assert not by_threshold(session)
    assert nested.view().tokens - before > 8_000


def test_pain_21_an_image_is_counted_as_text_or_kept_for_ever(session: StoredSession) -> None:
    """open-webui/open-webui#29761, justrach/codegraff#260, openai/codex#32287,
    omnigent-ai/omnigent#4470."""
    png = b"\x89PNG" + bytes(range(256)) * 3_000
    picture = Media(type="image", mime="image/png", data=png)
    before = session.view().tokens
    shown = session.append(Block(kind=Kind.IMAGE, media=picture)).last
    session.append(ToolCall(tool_call_id="shot", name="screenshot", arguments="{}"))
    taken = session.append(ToolResult(tool_call_id="shot", content=(picture,))).last
    counted = session.view().tokens - before
    sendable(session)
    source = render(session.view(), "anthropic")["messages"][0]["content"][0]["source"]

    talk(session, 20)
    outcome = compacted(session, limit=4_000)

    assert b64decode(source["data"]) == png
    assert counted < 10_000
    assert {shown, taken} <= set(outcome.left)
    assert source["data"][:100] not in rendered(session)
    (block,) = (recalled.block for recalled in session.recall(shown))
    assert isinstance(block, Block)
    assert block.media == picture
    sendable(session)


def test_pain_22_a_signed_thought_comes_back_changed(session: StoredSession) -> None:
    """anthropics/claude-code#12316, anthropics/claude-code#13589, anomalyco/opencode#41738.

    It comes back as it was, or, where the model that thought it saw more than is sent now, not at
    all.
    """
    item = '{"type":"thinking", "thinking":"Zo\\u00eb\\u2028 1.0 ", "signature":"c2ln/+=="}'
    native = Native(provider="anthropic", item=item)

    def think(call: str) -> int:
        session.append(Block.user("Look."))
        signed = session.append(
            Block.thinking("Zoë\u2028 1.0 ", native=native, message_id=call),
            thought("And then?", message_id=call),
            ToolCall(tool_call_id=call, name="bash", arguments='{"a":  1.0}', message_id=call),
        )
        session.append(ToolResult(tool_call_id=call, content="ok"))
        return signed.first

    def thoughts() -> list[Any]:
        messages = render(sendable(session), "anthropic")["messages"]
        return [piece for m in messages for piece in m["content"] if piece["type"] == "thinking"]

    talk(session, 6)
    first = think("before")
    as_they_were = thoughts()
    assert as_they_were[0] == json.loads(item)

    compacted(session, 100)
    assert first in positions(session.view())
    assert all(piece in as_they_were for piece in thoughts())
    second = think("after")

    assert thoughts()[-2] == json.loads(item)
    stored = [recalled.block for recalled in session.recall(first, second)]
    assert [block.native for block in stored] == [native, native]


def test_pain_23_pruning_breaks_the_prompt_cache(session: StoredSession) -> None:
    """anomalyco/opencode#32515, macanderson/stella#4381, code-yeongyu/senpi#425,
    esengine/DeepSeek-Reasonix#238: between boundaries nothing that was sent changes a byte."""
    session.set_system_prompt("Be brief.")
    prompts = talk(session, 6)
    compacted(session)
    epochs = [render(session.view(), "anthropic")["messages"]]

    session.pin(prompts[0])
    session.hide(session.view().entries[2].position, replacement="gone")
    for _ in range(3):
        talk(session, 1)
        epochs.append(render(session.view(), "anthropic")["messages"])

    for earlier, later in pairwise(epochs):
        sent = [json.dumps(message) for message in earlier]
        assert [json.dumps(message) for message in later][: len(sent)] == sent
    compacted(session)
    assert prompts[0] in positions(session.view())


GOLDEN = sorted((Path(__file__).parent / "adapters" / "golden").glob("*.sql"))


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[list[SessionStore]]:
    """Databases as every version stored them, opened by this one."""
    stores = []
    for dump in GOLDEN:
        file = tmp_path / f"{dump.stem}.db"
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(dump.read_text(encoding="utf-8"))
        stores.append(cutbank.open(file))
    yield stores
    for store in stores:
        store.close()


def test_pain_24_an_upgrade_makes_old_sessions_unloadable(
    store: SessionStore, upgraded: list[SessionStore]
) -> None:
    """github/copilot-cli#2899, pydantic/pydantic-ai#2792. (A server's old logs:
    `adapters/test_postgres_golden.py`.)"""
    assert upgraded

    for old in upgraded:
        assert old.sessions()
        for session in old.sessions():
            then = sendable(session)
            if session.state.closed:
                continue
            session.append(Block.user("Where were we?"))
            assert session.view().entries[:-1] == then.entries
            talk(session, 8)
            assert compacted(session).compacted
            sendable(session)
        assert verify(old).violations == []


def test_pain_25_a_compaction_is_billed_and_not_counted(session: StoredSession) -> None:
    """openai/openai-agents-python#4434, openai/codex#22486."""
    talk(session, 8)
    usage = Usage(input=190_000, cache_read=1_000, output=1_800)

    def dearly(_: Material) -> Draft:
        return Draft("Steps were done.", model="small-1", usage=usage, cost_usd=0.57)

    compacted(session, summariser=Scripted(dearly, name="llm"))

    summary = session.view().summary
    assert summary is not None
    assert (summary.summariser, summary.model) == ("llm", "small-1")
    assert (summary.usage, summary.cost_usd) == (usage, 0.57)
