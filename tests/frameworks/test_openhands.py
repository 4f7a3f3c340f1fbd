"""Agents of OpenHands run with a condenser of cutbank, and a model on the loopback."""

import runpy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from databases import each_database
from framework_programs import ROOT, read_programs, run_program
from loopback.answers import Answer, Call, Refuses, Request, Says, Stop, Tokens, Why
from loopback.providers import KEY
from loopback.server import Loopback

import cutbank
from cutbank import BlockKind, SessionStore, Trigger, audit, verify

if find_spec("openhands") is None:
    pytest.skip(
        "openhands-sdk is not installed: it needs Python 3.12, and versions of other packages "
        "that no framework of scripts/test-frameworks works with",
        allow_module_level=True,
    )

from openhands.sdk import LLM, Agent, Conversation, Message, TextContent, Tool, register_tool
from openhands.sdk.context.view import View
from openhands.sdk.event import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    LLMConvertibleEvent,
    MessageEvent,
)
from openhands.sdk.llm import MessageToolCall, ThinkingBlock

from cutbank.frameworks.openhands import CutbankCondenser

SCRIPT = ROOT / "scripts" / "example_openhands.py"
register_tool("read", runpy.run_path(str(SCRIPT))["ReadTool"])
LIMIT = 24_000
"""Tokens of a model that holds OpenHands' own prompt and a few files."""


def answer_with_a_call(request: Request) -> Answer:
    items = request.body["input"]
    usage = Tokens(input=len(str(items)) // 4)
    if items[-1].get("type") == "function_call_output":
        return Says("It needs water.", usage=usage)
    call = Call("read", {"path": "a.py"}, f"call_{request.number}")
    return Says(calls=(call,), stop=Stop.TOOL, usage=usage)


def begin(store: SessionStore, server: Loopback, **fields: Any) -> Any:
    """Begin a conversation whose condenser keeps its events in the session `t`."""
    condenser = CutbankCondenser(session="t", **{"limit": LIMIT, **fields})
    condenser.use_store(store)
    llm = LLM(model="openai/gpt-5-mini", base_url=f"{server.url}/v1", api_key=KEY)
    return Conversation(
        Agent(llm=llm, tools=[Tool(name="read")], condenser=condenser),
        callbacks=[condenser.keep_event],
        visualizer=None,
    )


def ask(conversation: Any, number: int) -> str:
    conversation.send_message(f"What does file {number} need?")
    conversation.run()
    return str(conversation.state.view.events[-1].to_llm_message().content[0].text)


def list_condensations(conversation: Any) -> list[Condensation]:
    return [one for one in conversation.state.events if isinstance(one, Condensation)]


def check_legal(conversation: Any) -> None:
    """Check that OpenHands itself would drop nothing from what is sent."""
    events = list(conversation.state.events)
    assert list_ids(conversation.state.view) == list_ids(View.from_events(events))


def list_ids(view: View) -> list[str]:
    return [event.id for event in view.events]


@each_database
def test_an_agent_goes_on_while_its_history_is_condensed(
    opened: SessionStore, server: Loopback
) -> None:
    conversation = begin(opened, server, policy="reserve-headroom")
    for number in range(12):
        assert ask(conversation, number) == "It needs water."
        check_legal(conversation)

    log = opened.session("t", create=False)
    assert len([one for one in log.blocks() if one.item]) == 48
    assert log.view().summary is not None
    (summary,) = [one.text for one in cutbank.list_items(log.view()) if not one.entries]
    assert list_condensations(conversation)[-1].summary == summary
    sent = [request.body["input"] for request in server.requests]
    assert len(sent) == 24
    assert "conversation-summary" in str(sent[-1])
    assert any(len(sent[at]) < len(sent[at - 1]) for at in range(1, len(sent)))
    reports = [call.report for call in audit(log).calls if call.report]
    assert [report.renderer for report in reports] == ["openhands/1"] * 24
    assert {report.model for report in reports} == {"openai/gpt-5-mini"}
    usages = [report.usage for report in reports if report.usage]
    assert [usage.input for usage in usages] == [len(str(items)) // 4 for items in sent]
    assert "read" in str(log.view().tools)
    assert verify(opened).is_ok


def test_a_refused_prompt_is_condensed_and_sent_again(
    opened: SessionStore, server: Loopback
) -> None:
    def hold_little(request: Request) -> Answer:
        if len(str(request.body["input"])) > 30_000:
            return Refuses(Why.OVERFLOW, tokens=9_000, limit=8_000)
        return answer_with_a_call(request)

    server.script = hold_little
    conversation = begin(opened, server, policy="reserve-headroom", limit=1_000_000)
    said = [ask(conversation, number) for number in range(10)]

    assert said == ["It needs water."] * 10
    assert any(len(str(request.body["input"])) > 30_000 for request in server.requests)
    assert list_condensations(conversation)
    boundaries = cutbank.lineage_tree(opened.session("t", create=False)).nodes
    assert {node.boundary.trigger for node in boundaries} == {Trigger.OVERFLOW}
    check_legal(conversation)


def test_a_conversation_is_condensed_when_its_user_asks(
    opened: SessionStore, server: Loopback
) -> None:
    conversation = begin(opened, server, policy="tail-turns")
    ask(conversation, 0)
    conversation.condense()  # there is nothing that could leave
    assert ask(conversation, 1) == "It needs water."
    for number in range(2, 7):
        ask(conversation, number)
    before = len(conversation.state.view.events)
    conversation.condense()

    assert [one.summary is None for one in list_condensations(conversation)] == [True, False]
    assert len(conversation.state.view.events) < before
    assert not conversation.state.view.unhandled_condensation_request
    assert ask(conversation, 7) == "It needs water."


def test_results_are_sent_shortened_where_the_view_shortens_them(
    opened: SessionStore, server: Loopback
) -> None:
    conversation = begin(opened, server, policy="clear-tool-results", limit=200_000)
    for number in range(6):
        ask(conversation, number)
    outcome = opened.session("t", create=False).compact("clear-tool-results", limit=12_000)
    ask(conversation, 6)

    results = [
        item["output"]
        for item in server.requests[-1].body["input"]
        if item.get("type") == "function_call_output"
    ]
    assert outcome.compacted
    assert "line after line" not in str(results[0])
    assert "line after line" in str(results[-1])
    assert len(results) == 7
    assert list_condensations(conversation) == []


@pytest.mark.parametrize(("turns", "others"), [(3, 1), (12, 1), (12, 12)])
def test_a_conversation_that_goes_back_takes_back(
    turns: int, others: int, opened: SessionStore, server: Loopback
) -> None:
    conversation = begin(opened, server, policy="reserve-headroom")
    said: list[str] = []
    for number in range(turns):
        ask(conversation, number)
        said.append(conversation.state.events[-1].id)
    newest = conversation.state.leaf_event_id
    condensed_when_it_left = bool(list_condensations(conversation))
    assert condensed_when_it_left == (turns == 12)
    conversation.navigate_to(said[0])
    for number in range(100, 100 + others):
        ask(conversation, number)

    log = opened.session("t", create=False)
    texts = [one.block.text for one in log.blocks(kinds=[BlockKind.USER])]
    numbers = [0, *range(100, 100 + others)]
    assert texts == [f"What does file {number} need?" for number in numbers]
    assert bool(log.view().summary) == (others == 12)
    # And again to where it was before, which the log has to store once more.
    conversation.navigate_to(newest)
    before = [event.id for event in conversation.state.view.events]
    ask(conversation, 200)
    assert [event.id for event in conversation.state.view.events][: len(before)] == before
    stored = [one.item for one in log.blocks() if one.item]
    assert [item["id"] for item in stored if isinstance(item, dict)] == list_ids(
        conversation.state.view
    )[1:]
    assert (
        "conversation-summary" in str(server.requests[-1].body["input"])
    ) == condensed_when_it_left
    assert verify(opened).is_ok


def make_loop(number: int, actions: int) -> list[LLMConvertibleEvent]:
    """Return a prompt and a loop of actions, of which the first has a signed thought."""
    said = Message(role="user", content=[TextContent(text=f"Question {number}?")])
    events: list[LLMConvertibleEvent] = [MessageEvent(source="user", llm_message=said)]
    for at in range(actions):
        call = MessageToolCall(
            id=f"call-{number}-{at}", name="read", arguments="{}", origin="completion"
        )
        thoughts = [ThinkingBlock(thinking="Hm.", signature="x")] if at == 0 else []
        named = {"tool_name": "read", "tool_call_id": call.id}
        events += [
            ActionEvent(
                thought=[],
                thinking_blocks=thoughts,
                tool_call=call,
                llm_response_id=f"answer-{number}-{at}",
                **named,
            ),
            AgentErrorEvent(error="line after line of a long file\n" * 100, **named),
        ]
    return events


@pytest.mark.parametrize("actions", [1, 2, 5, 9])
def test_a_loop_that_begins_with_a_signed_thought_leaves_whole(
    actions: int, opened: SessionStore
) -> None:
    condenser = CutbankCondenser(session="t", policy="reserve-headroom", limit=20_000)
    condenser.use_store(opened)
    events: list[Any] = []
    for number in range(40):
        events += make_loop(number, actions)
        view = View.from_events(events)
        while isinstance(done := condenser.condense(view), Condensation):
            events.append(done)
            view = View.model_construct()
            for event in events:
                view.append_event(event)
            assert list_ids(view) == list_ids(View.from_events(events))
        assert list_ids(done) == list_ids(view)

    assert any(isinstance(event, Condensation) for event in events)


def test_the_summary_of_another_condenser_is_kept_as_a_text(opened: SessionStore) -> None:
    events: list[Any] = make_loop(0, 2)
    events.append(
        Condensation(
            forgotten_event_ids={event.id for event in events},
            summary="They spoke of water.",
            summary_offset=0,
            llm_response_id="r",
        )
    )
    condenser = CutbankCondenser(session="t", limit=100_000)
    condenser.use_store(opened)

    done = condenser.condense(View.from_events([*events, *make_loop(1, 1)]))

    assert len(done.events) == 4
    texts = [one.block.text for one in condenser.log.blocks(kinds=[BlockKind.DEVELOPER])]
    assert texts == ["They spoke of water."]


@pytest.mark.parametrize("where", ["module", "page"])
def test_the_program_that_a_reader_sees_runs(where: str, tmp_path: Path, server: Loopback) -> None:
    server.script = lambda _: Says("Hello to you.")
    program = read_programs("openhands", "OpenHands")[where]

    assert run_program("-c", program, server=server, cwd=tmp_path) == ["Hello to you."]


def test_the_example_goes_on_in_its_conversation(tmp_path: Path, server: Loopback) -> None:
    for _ in range(2):
        arguments = ("log.db", "--turns", "6", "--limit", str(LIMIT))
        printed = run_program(str(SCRIPT), *arguments, server=server, cwd=tmp_path)
        assert printed == ["It needs water."] * 6

    with cutbank.open(tmp_path / "log.db") as store:
        session = store.session("example", create=False)
        assert len(list(session.blocks(kinds=[BlockKind.USER]))) == 12
        assert session.view().boundary is not None
