"""Agents of the Agent Development Kit are sent the view of their session, by the loopback model."""

import asyncio
import gc
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from framework_adapters import make_adk_turn
from framework_programs import ROOT, read_programs, run_program
from loopback.answers import Answer, Call, Refuses, Request, Says, Tokens, Why
from loopback.providers import KEY
from loopback.server import Loopback, loopback

import cutbank
from cutbank import BlockKind, SessionStore, StoredSession, audit, verify

if find_spec("google") is None or find_spec("google.adk") is None:
    pytest.skip(
        "google-adk is not installed: scripts/test-frameworks has it", allow_module_level=True
    )

from google.adk.agents import Agent
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from cutbank.frameworks.google_adk import CutbankPlugin, CutbankSessionService, CutbankSummarizer

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL:UserWarning"),
    pytest.mark.filterwarnings("ignore:The `plugins` argument:DeprecationWarning"),  # its own
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # it leaves its models' sockets open
]
LIMIT = 8_000
FILE = "line after line of a long file\n" * 100


def read(path: str) -> str:
    """Read a file of the project."""
    return f"{path}:\n{FILE}"


def list_parts(contents: list[Any], name: str) -> list[Any]:
    return [part[name] for one in contents for part in one["parts"] if name in part]


def answer_with_a_call(request: Request) -> Answer:
    """Call the tool once for each question, and then answer."""
    contents = request.body["contents"]
    usage = Tokens(input=len(str(contents)) // 4)
    if list_parts(contents[-1:], "functionResponse"):
        return Says("It needs water.", usage=usage)
    return Says(calls=(Call("read", {"path": f"{request.number}.py"}),), usage=usage)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with loopback(answer_with_a_call) as server:
        monkeypatch.setenv("GOOGLE_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        yield server
        gc.collect()  # here, where its sockets are expected


def make_agent(**fields: Any) -> Agent:
    given = {"name": "gardener", "model": "gemini-2.5-flash", "tools": [read]}
    return Agent(**{**given, "instruction": "Be brief.", **fields})


def ask(store: SessionStore, turns: int, *, agent: Agent | None = None, **app: Any) -> list[str]:
    """Ask an agent in the session `s`, and return its answers."""
    plugins = [CutbankPlugin(policy="reserve-headroom", limit=LIMIT)]
    made = App(**{"name": "app", "root_agent": agent or make_agent(), "plugins": plugins, **app})

    async def run() -> list[str]:
        service = CutbankSessionService(store)
        runner = Runner(app=made, session_service=service)
        questions = [f"What does file {number} need?" for number in range(turns)]
        events = await runner.run_debug(questions, user_id="anna", session_id="s", quiet=True)
        return [
            part.text
            for event in events
            for part in (event.content.parts if event.content else None) or []
            if part.text
        ]

    return asyncio.run(run())


def open_log(store: SessionStore) -> StoredSession:
    names = {"app_name": "app", "user_id": "anna", "session_id": "s"}
    return CutbankSessionService(store).log(**names)


def check_pairs(contents: list[Any]) -> None:
    """Check what Gemini demands: each result directly after its call, each call with its result."""
    for at, content in enumerate(contents):
        results = list_parts([content], "functionResponse")
        calls = list_parts(contents[at - 1 : at], "functionCall")
        assert [one["name"] for one in results] == [one["name"] for one in calls]


def test_a_long_session_is_compacted_while_its_events_stay_whole(
    opened: SessionStore, server: Loopback
) -> None:
    assert ask(opened, 20) == ["It needs water."] * 20

    sent = [request.body["contents"] for request in server.requests]
    assert len(sent) == 40
    for contents in sent:
        check_pairs(contents)
        assert len(str(contents)) // 4 < LIMIT
    assert "conversation-summary" in sent[-1][0]["parts"][0]["text"]
    log = open_log(opened)
    assert len(list(log.blocks(kinds=[BlockKind.TOOL_RESULT]))) == 20
    assert len([one for one in log.blocks() if one.item]) == 80
    assert verify(opened).is_ok


def test_each_call_is_recorded_with_what_it_was_sent(
    opened: SessionStore, server: Loopback
) -> None:
    ask(opened, 12)

    reports = [call.report for call in audit(open_log(opened)).calls if call.report]
    sent = [request.body["contents"] for request in server.requests]
    assert [one.usage.input for one in reports if one.usage] == [len(str(one)) // 4 for one in sent]
    assert {report.renderer for report in reports} == {"google-adk/1"}
    assert {report.model for report in reports} == {"gemini-2.5-flash"}
    view = cutbank.audit_call(open_log(opened), len(sent)).view
    assert view is not None
    shown: Any = view.render("google-adk")["contents"]
    assert view.summary is not None
    assert [one["role"] for one in shown] == [one["role"] for one in sent[-1]]
    assert list_parts(shown, "text") == list_parts(sent[-1], "text")
    assert view.system_prompt == server.requests[-1].body["systemInstruction"]["parts"][0]["text"]


def test_a_refused_request_is_compacted_and_sent_again(
    opened: SessionStore, server: Loopback
) -> None:
    def hold_little(request: Request) -> Answer:
        if len(str(request.body["contents"])) > 16_000:
            return Refuses(Why.OVERFLOW, tokens=5_000, limit=4_000)
        return answer_with_a_call(request)

    server.script = hold_little
    assert (
        ask(opened, 6, plugins=[CutbankPlugin(policy="reserve-headroom", limit=100_000)])
        == ["It needs water."] * 6
    )

    assert open_log(opened).view().summary is not None


def test_another_agents_words_stay_where_they_are(opened: SessionStore, server: Loopback) -> None:
    def transfer_once(request: Request) -> Answer:
        if "transfer_to_agent" in str(request.body["contents"]):
            return answer_with_a_call(request)
        return Says(calls=(Call("transfer_to_agent", {"agent_name": "second"}),))

    server.script = transfer_once
    second = make_agent(name="second", description="Knows files.")
    ask(opened, 2, agent=make_agent(sub_agents=[second]))

    last = server.requests[-1].body["contents"]
    assert any("gardener" in text for text in list_parts(last, "text"))
    assert len(list_parts(last, "functionResponse")) == 2
    # A call that was sent more than the view, or less, is not recorded.
    assert len([call for call in audit(open_log(opened)).calls if call.report]) == 1


def test_an_agent_in_a_tool_is_sent_its_own_history(opened: SessionStore, server: Loopback) -> None:
    def delegate(request: Request) -> Answer:
        texts = list_parts(request.body["contents"], "text")
        if "inner task" in texts:
            return Says("Inner answer.")
        if list_parts(request.body["contents"], "functionResponse"):
            return Says("It needs water.")
        return Says(calls=(Call("inner", {"request": "inner task"}),))

    server.script = delegate
    inner = make_agent(name="inner", description="Knows more.", tools=[])

    assert ask(opened, 1, agent=make_agent(tools=[AgentTool(inner)])) == ["It needs water."]

    texts = [one.block.text for one in open_log(opened).blocks(kinds=[BlockKind.USER])]
    assert texts == ["What does file 0 need?"]


def test_the_adks_own_compaction_gets_a_summary(opened: SessionStore, server: Loopback) -> None:
    config = EventsCompactionConfig(
        summarizer=CutbankSummarizer(), compaction_interval=2, overlap_size=0
    )
    assert ask(opened, 6, plugins=[], events_compaction_config=config) == ["It needs water."] * 6

    last = server.requests[-1].body["contents"]
    (summary,) = list_parts(last[:1], "text")
    assert "What does file 1 need?" in summary
    assert "(#" not in summary
    assert len(last) < 12
    check_pairs(last)


def test_a_summary_of_nothing_is_none() -> None:
    assert asyncio.run(CutbankSummarizer().maybe_summarize_events(events=[])) is None
    short = [Event(author="user", content=types.Content(role="user", parts=[types.Part(text="a")]))]
    assert asyncio.run(CutbankSummarizer().maybe_summarize_events(events=short)) is None


def test_the_bytes_of_an_image_are_stored_once(opened: SessionStore) -> None:
    async def run() -> None:
        service = CutbankSessionService(opened)
        session = await service.create_session(app_name="app", user_id="anna", session_id="s")
        image = types.Part.from_bytes(data=bytes(range(256)) * 40, mime_type="image/png")
        content = types.Content(role="user", parts=[types.Part(text="Look."), image])
        await service.append_event(session, Event(author="user", content=content))

        again = await service.get_session(app_name="app", user_id="anna", session_id="s")
        assert again is not None
        assert again.events[0].content == content

    asyncio.run(run())
    (text, image) = open_log(opened).blocks()
    assert [text.block.kind, image.block.kind] == ["user", "image"]
    assert image.stored_item is not None
    assert len(image.stored_item.item) < 1_000


def add_turns(store: SessionStore, *turns: list[Event]) -> StoredSession:
    async def run() -> None:
        service = CutbankSessionService(store)
        names: dict[str, Any] = {"app_name": "app", "user_id": "anna", "session_id": "s"}
        session = await service.get_session(**names) or await service.create_session(**names)
        for events in turns:
            for event in events:
                await service.append_event(session, event)

    asyncio.run(run())
    return open_log(store)


def change_result(number: int, **response: str) -> list[Event]:
    """Return a turn whose tool returned something else."""
    events = make_adk_turn(number)
    events[2].content.parts[0].function_response.response = response
    return events


def test_a_result_is_sent_shortened_where_the_view_shortens_it(
    opened: SessionStore, server: Loopback
) -> None:
    long = "word " * 100
    turns = [change_result(1, result=long), change_result(2, output=long, log=long)]
    log = add_turns(opened, *(make_adk_turn(number) for number in range(10, 40)), *turns)
    for result in list(log.blocks(last=8, kinds=[BlockKind.TOOL_RESULT]))[-2:]:
        log.hide(result.position, replacement=f"[cut {result.block.text[:1]}]")
    log.compact("reserve-headroom", limit=LIMIT)
    ask(opened, 1, agent=make_agent(name="helper"))

    sent = server.requests[0].body["contents"]
    check_pairs(sent)
    responses = list_parts(sent, "functionResponse")
    assert [one["response"] for one in responses[-2:]] == [
        {"result": "[cut w]"},
        {"result": "[cut {]"},
    ]
    assert len(sent) < 60


def test_a_late_result_whose_call_left_is_sent_as_a_text(
    opened: SessionStore, server: Loopback
) -> None:
    late = change_result(0, result="done at last")[2]
    late.author, late.id = "user", "late"
    turns = [make_adk_turn(number) for number in range(40)]
    add_turns(opened, *turns, [late]).compact("reserve-headroom", limit=LIMIT)
    ask(opened, 1, agent=make_agent(name="helper"))

    sent = server.requests[0].body["contents"]
    check_pairs(sent)
    assert '{"result": "done at last"}' in list_parts(sent, "text")


@pytest.mark.parametrize("where", ["module", "page"])
def test_the_program_that_a_reader_sees_runs(where: str, tmp_path: Path, server: Loopback) -> None:
    server.script = lambda _: Says("Hello to you.")
    program = read_programs("google_adk", "Google ADK")[where]

    assert run_program("-c", program, server=server, cwd=tmp_path) == ["Hello to you."]


def test_the_example_goes_on_in_its_session(tmp_path: Path, server: Loopback) -> None:
    script = str(ROOT / "scripts" / "example_google_adk.py")
    for _ in range(2):
        arguments = ("log.db", "--turns", "4", "--limit", str(LIMIT))
        printed = run_program(script, *arguments, server=server, cwd=tmp_path)
        assert printed == ["It needs water."] * 4

    with cutbank.open(tmp_path / "log.db") as store:
        log = store.session("anna/example", namespace="adk/example", create=False)
        assert len(list(log.blocks(kinds=[BlockKind.USER]))) == 8
        assert log.view().boundary is not None
