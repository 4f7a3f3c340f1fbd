"""Agents of Strands run on sessions of cutbank, with a model on the loopback."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from databases import each_database
from framework_adapters import make_strands_turn
from framework_programs import ROOT, read_programs, run_program
from loopback.answers import Answer, Call, Refuses, Request, Says, Stop, Tokens, Why
from loopback.providers import KEY
from loopback.server import Loopback, loopback

import cutbank
from cutbank import BlockKind, SessionStore, audit, verify

if find_spec("strands") is None:
    pytest.skip("strands is not installed: scripts/test-frameworks has it", allow_module_level=True)

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.session import RepositorySessionManager
from strands.types.exceptions import SessionException
from strands.types.session import SessionAgent, SessionMessage

from cutbank.frameworks.strands import CutbankConversationManager, CutbankSessionRepository

LIMIT = 8_000


def answer_with_a_call(request: Request) -> Answer:
    messages = request.body["messages"]
    usage = Tokens(input=len(str(messages)) // 4)
    if messages[-1]["role"] == "tool":
        return Says("It needs water.", usage=usage)
    call = Call("read", {"path": "a.py"}, f"call_{request.number}")
    return Says(calls=(call,), stop=Stop.TOOL, usage=usage)


@tool  # type: ignore[untyped-decorator,unused-ignore]
def read(path: str) -> str:
    """Read a file of the project."""
    return f"{path}:\n" + "line after line of a long file\n" * 200


def make_agent(store: SessionStore, server: Loopback) -> Agent:
    repository = CutbankSessionRepository(store)
    client: dict[str, Any] = {"base_url": f"{server.url}/v1", "api_key": KEY}
    return Agent(
        OpenAIModel(client_args=client, model_id="gpt-5-mini"),
        system_prompt="Be brief.",
        tools=[read],
        session_manager=RepositorySessionManager("t", repository),
        conversation_manager=CutbankConversationManager(
            repository, "t", policy="reserve-headroom", limit=LIMIT
        ),
        callback_handler=None,
    )


def ask(agent: Agent, number: int) -> str:
    return str(agent(f"What does file {number} need?")).strip()


@each_database
def test_an_agent_goes_on_while_its_history_is_compacted(database: str, server: Loopback) -> None:
    with cutbank.open(database) as store:
        agent = make_agent(store, server)
        said = [ask(agent, number) for number in range(6)]
        # An agent that begins again has all messages, and sends the view.
        agent = make_agent(store, server)
        assert len(agent.messages) == 24
        said += [ask(agent, number) for number in range(6, 8)]

        assert said == ["It needs water."] * 8
        repository = CutbankSessionRepository(store)
        stored = repository.list_messages("t", "default")
        assert [message.message_id for message in stored] == list(range(32))
        assert len(agent.messages) < 32
        sent = [request.body["messages"] for request in server.requests]
        assert any(len(sent[at]) < len(sent[at - 1]) for at in range(1, len(sent)))
        for messages in sent:
            calls = [call["id"] for one in messages for call in one.get("tool_calls") or []]
            results = [one["tool_call_id"] for one in messages if one["role"] == "tool"]
            assert sorted(calls) == sorted(results)
        log = repository.log("t")
        assert log.view().summary is not None
        assert log.view().system_prompt == "Be brief."
        reports = [call.report for call in audit(log).calls if call.report]
        assert [report.renderer for report in reports] == ["strands/1"] * len(sent)
        assert {report.model for report in reports} == {"gpt-5-mini"}
        usages = [report.usage for report in reports if report.usage]
        assert [usage.input for usage in usages] == [len(str(one)) // 4 for one in sent]
        assert verify(store).is_ok


def test_a_refused_prompt_is_compacted_and_sent_again(opened: SessionStore) -> None:
    def hold_little(request: Request) -> Answer:
        if len(str(request.body["messages"])) > 12_000:
            return Refuses(Why.OVERFLOW, tokens=4_000, limit=3_000)
        return answer_with_a_call(request)

    with loopback(hold_little) as server:
        agent = make_agent(opened, server)
        said = [ask(agent, number) for number in range(6)]
        assert any(len(str(request.body["messages"])) > 12_000 for request in server.requests)

    assert said == ["It needs water."] * 6
    repository = CutbankSessionRepository(opened)
    assert len(repository.list_messages("t", "default")) == 24
    assert repository.log("t").view().summary is not None


def test_an_overflow_that_only_strands_recognizes_is_compacted(
    opened: SessionStore, server: Loopback
) -> None:
    agent = make_agent(opened, server)
    for number in range(3):
        ask(agent, number)
    agent.conversation_manager.reduce_context(agent, RuntimeError("the model said no"))

    assert CutbankSessionRepository(opened).log("t").view().summary is not None
    assert len(agent.messages) < 12


@each_database
def test_a_redacted_message_leaves_the_view_at_once(database: str) -> None:
    with cutbank.open(database) as store:
        repository = CutbankSessionRepository(store)
        turn = make_strands_turn(0)
        RepositorySessionManager("t", repository)
        repository.create_agent("t", SessionAgent("default", {}, {}))
        for at, message in enumerate(turn):
            repository.create_message("t", "default", SessionMessage(message, at))
        (first, *rest) = repository.list_messages("t", "default")
        first.redact_message = {"role": "user", "content": [{"text": "[redacted]"}]}
        repository.update_message("t", "default", first)

        assert repository.list_messages("t", "default") == [first, *rest]
        assert repository.read_message("t", "default", 0) == first
        texts = [one.block.text for one in repository.log("t").blocks(kinds=[BlockKind.USER])]
        assert texts == ["[redacted]"]
        assert "Question" not in str(repository.log("t").view().render("strands"))
        with pytest.raises(SessionException, match="message 1 of 't' exists"):
            repository.create_message("t", "default", rest[0])
        with pytest.raises(SessionException, match="no message 9 is in"):
            repository.update_message("t", "default", SessionMessage(turn[0], 9))


@pytest.mark.parametrize("where", ["module", "page"])
def test_the_program_that_a_reader_sees_runs(where: str, tmp_path: Path, server: Loopback) -> None:
    server.script = lambda _: Says("Hello to you.")
    program = read_programs("strands", "Strands Agents")[where]

    printed = run_program("-c", program, server=server, cwd=tmp_path)
    assert [line for line in printed if line] == ["Hello to you."]


def test_the_example_goes_on_in_its_session(tmp_path: Path, server: Loopback) -> None:
    script = str(ROOT / "scripts" / "example_strands.py")
    for _ in range(2):
        arguments = ("log.db", "--turns", "4", "--limit", str(LIMIT))
        printed = run_program(script, *arguments, server=server, cwd=tmp_path)
        assert printed == ["It needs water."] * 4

    with cutbank.open(tmp_path / "log.db") as store:
        session = store.session("example", create=False)
        assert len(list(session.blocks(kinds=[BlockKind.USER]))) == 8
        assert session.view().boundary is not None
