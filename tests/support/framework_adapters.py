"""One way to drive the adapter of each framework, for the rules that all of them keep."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any, cast

import pytest

import cutbank
from cutbank import SessionStore, StoredSession

WORDS = "the quick brown lynx reads line after line of a long file"


@dataclass(frozen=True)
class Adapter:
    """How a framework stores its items in a session, and reads them."""

    framework: str
    """The module that has to be installed."""
    open: Callable[[SessionStore, str], Any]
    """Return the framework's session of that name."""
    log: Callable[[Any], StoredSession]
    add: Callable[[Any, Sequence[Any]], Coroutine[Any, Any, None]]
    read: Callable[[Any], Coroutine[Any, Any, list[Any]]]
    """Return all items as the framework gets them back."""
    make_turn: Callable[[int], list[Any]]
    """Return the items of a turn: a prompt, a call of a tool, its result, and an answer."""
    stores_turns: bool = True
    """Whether `add` stores its items in one transaction, or each in one of its own."""
    has_writers: bool = True
    """Whether several processes may add to one session."""

    def __str__(self) -> str:
        return self.framework


def make_result(number: int) -> str:
    return f"result {number}: " + f"{WORDS} " * 20


def make_openai_turn(number: int) -> list[dict[str, Any]]:
    said = {"type": "output_text", "text": f"Answer {number}.", "annotations": []}
    call = {"call_id": f"call-{number}", "name": "read", "arguments": f'{{"path": "{number}.py"}}'}
    return [
        {"role": "user", "content": f"Question {number}?"},
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "x" * 60},
        {"type": "function_call", "id": f"fc_{number}", "status": "completed", **call},
        {
            "type": "function_call_output",
            "call_id": f"call-{number}",
            "output": make_result(number),
        },
        {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [said],
        },
    ]


def open_openai_session(store: SessionStore, key: str) -> Any:
    from cutbank.frameworks.openai_agents import CutbankSession  # noqa: PLC0415 - not everywhere

    return CutbankSession(key, store, limit=8_000)


def make_claude_turn(number: int) -> list[dict[str, Any]]:
    answer = {"id": f"msg_{number}", "type": "message", "role": "assistant"}
    call = {"type": "tool_use", "id": f"call-{number}", "name": "read", "input": {"path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": f"call-{number}"}
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "x" * 60}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Question {number}?"},
        {**answer, "content": [thinking]},
        {**answer, "content": [call]},
        {"role": "user", "content": [{**result, "content": make_result(number)}]},
        {**answer, "id": f"end_{number}", "content": [{"type": "text", "text": "Done."}]},
    ]
    return [
        {"type": "file-history-snapshot", "messageId": f"m{number}", "snapshot": {"of": [1.0]}},
        *(
            {"type": one["role"], "uuid": f"{number}-{at}", "message": one, "toolUseResult": {}}
            for at, one in enumerate(messages)
        ),
    ]


@dataclass
class ClaudeTranscript:
    """One transcript of a store of the Claude Agent SDK."""

    store: Any
    key: Any

    async def add(self, entries: Sequence[Any]) -> None:
        await self.store.append(self.key, list(entries))

    async def read(self) -> list[Any]:
        return await self.store.load(self.key) or []


def open_claude_transcript(store: SessionStore, key: str) -> ClaudeTranscript:
    from cutbank.frameworks.claude_agent import CutbankSessionStore  # noqa: PLC0415 - as above

    return ClaudeTranscript(
        CutbankSessionStore(store), {"project_key": "project", "session_id": key}
    )


def make_adk_turn(number: int) -> list[Any]:
    from google.adk.events import Event  # noqa: PLC0415 - as above

    call = {"id": f"call-{number}", "name": "read", "args": {"path": f"{number}.py"}}
    result = {**call, "response": {"result": make_result(number)}}
    del result["args"]
    contents: list[tuple[str, str, list[dict[str, Any]]]] = [
        ("user", "user", [{"text": f"Question {number}?"}]),
        (
            "helper",
            "model",
            [{"text": "Hm.", "thought": True}, {"function_call": call}],
        ),
        ("helper", "user", [{"function_response": result}]),
        ("helper", "model", [{"text": f"Answer {number}."}]),
    ]
    return [
        Event.model_validate(
            {
                "id": f"event-{number}-{at}",
                "author": author,
                "invocation_id": f"run-{number}",
                "timestamp": number * 10.0 + at,
                "content": {"role": role, "parts": parts},
                "actions": {"state_delta": {"turns": number}},
            }
        )
        for at, (author, role, parts) in enumerate(contents)
    ]


@dataclass
class AdkSession:
    """One session of a service of ADK, which is read again when another process wrote to it."""

    service: Any
    names: dict[str, str]
    session: Any = None

    async def add(self, events: Sequence[Any]) -> None:
        for event in events:
            while not await self._append(event):
                pass

    async def _append(self, event: Any) -> bool:
        from google.adk.errors import StaleSessionError  # noqa: PLC0415 - as above
        from google.adk.errors.already_exists_error import AlreadyExistsError  # noqa: PLC0415

        try:
            if self.session is None:
                self.session = await self.service.create_session(**self.names)
            await self.service.append_event(self.session, event)
        except (AlreadyExistsError, StaleSessionError):
            self.session = await self.service.get_session(**self.names)
            return False
        return True

    async def read(self) -> list[Any]:
        session = await self.service.get_session(**self.names)
        return session.events if session else []


def open_adk_session(store: SessionStore, key: str) -> AdkSession:
    from cutbank.frameworks.google_adk import CutbankSessionService  # noqa: PLC0415 - as above

    names = {"app_name": "app", "user_id": "user", "session_id": key}
    return AdkSession(CutbankSessionService(store), names)


def make_pydantic_ai_turn(number: int) -> list[dict[str, Any]]:
    from pydantic_ai import messages as parts  # noqa: PLC0415 - not everywhere

    at = datetime(2026, 1, 1, tzinfo=UTC)
    call = f"call-{number}"
    messages: list[parts.ModelMessage] = [
        parts.ModelRequest([parts.UserPromptPart(f"Question {number}?", timestamp=at)]),
        parts.ModelResponse(
            [
                parts.ThinkingPart("Hm.", signature="x" * 60, provider_name="openai"),
                parts.ToolCallPart("read", {"path": f"{number}.py"}, call),
            ],
            timestamp=at,
        ),
        parts.ModelRequest([parts.ToolReturnPart("read", make_result(number), call, timestamp=at)]),
        parts.ModelResponse([parts.TextPart(f"Answer {number}.")], timestamp=at),
    ]
    return cast(
        list[dict[str, Any]], parts.ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    )


@dataclass
class PydanticConversation:
    """The history of one conversation of Pydantic AI, as its runs give it to the log."""

    store: SessionStore
    key: str

    async def add(self, items: Sequence[Any]) -> None:
        from cutbank.frameworks import framework_adapter, pydantic_ai  # noqa: PLC0415 - not everywhere

        mirror = framework_adapter.ItemMirror(self.store)
        messages = pydantic_ai.load_messages([*await self.read(), *items])
        session = self.store.session(self.key)
        await cutbank.run_async(pydantic_ai.mirror_messages, mirror, session, messages)

    async def read(self) -> list[Any]:
        from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415 - as above

        from cutbank.frameworks.pydantic_ai import CutbankHistory  # noqa: PLC0415 - as above

        history = CutbankHistory(self.store)
        conversation = await cutbank.run_async(history.load, self.key)
        dumped = ModelMessagesTypeAdapter.dump_python(conversation.messages, mode="json")
        return cast(list[Any], dumped)


def make_agent_framework_turn(number: int) -> list[dict[str, Any]]:
    from agent_framework import Content, Message  # noqa: PLC0415 - as above

    reasoning = Content.from_text_reasoning(text="Hm.", protected_data="x" * 60)
    call = Content.from_function_call(f"call-{number}", "read", arguments='{"path": "a.py"}')
    result = Content.from_function_result(f"call-{number}", result=make_result(number))
    messages = [
        Message("user", [f"Question {number}?"]),
        Message("assistant", [reasoning, call], message_id=f"msg-{number}"),
        Message("tool", [result]),
        Message("assistant", [f"Answer {number}."], author_name="helper"),
    ]
    return [message.to_dict() for message in messages]


@dataclass
class AgentFrameworkHistory:
    """One session of a history provider of the Agent Framework."""

    provider: Any
    key: str

    async def add(self, messages: Sequence[Any]) -> None:
        from agent_framework import Message  # noqa: PLC0415 - as above

        await self.provider.save_messages(self.key, [Message.from_dict(one) for one in messages])

    async def read(self) -> list[Any]:
        """Return all messages; the provider itself loads the view."""
        from agent_framework import Message  # noqa: PLC0415 - as above

        await self.provider.get_messages(self.key)
        blocks = self.provider.log(self.key).blocks()
        return [Message.from_dict(one.item).to_dict() for one in blocks if one.item]


def open_agent_framework_history(store: SessionStore, key: str) -> AgentFrameworkHistory:
    from cutbank.frameworks.agent_framework import (  # noqa: PLC0415 - as above
        CutbankHistoryProvider,
    )

    return AgentFrameworkHistory(CutbankHistoryProvider(store, limit=1_000_000), key)


def make_strands_turn(number: int) -> list[Any]:
    call = f"call-{number}"
    use = {"toolUseId": call, "name": "read", "input": {"path": f"{number}.py"}}
    result = {"toolUseId": call, "status": "success", "content": [{"text": make_result(number)}]}
    thought = {"reasoningText": {"text": "Hm.", "signature": "x" * 60}}
    return [
        {"role": "user", "content": [{"text": f"Question {number}?"}]},
        {"role": "assistant", "content": [{"reasoningContent": thought}, {"toolUse": use}]},
        {"role": "user", "content": [{"toolResult": result}]},
        {"role": "assistant", "content": [{"text": f"Answer {number}."}]},
    ]


@dataclass
class StrandsSession:
    """The messages of an agent of Strands in a repository."""

    repository: Any
    key: str

    async def add(self, messages: Sequence[Any]) -> None:
        await cutbank.run_async(self._add, messages)

    def _add(self, messages: Sequence[Any]) -> None:
        from strands.types.session import SessionMessage  # noqa: PLC0415 - not everywhere

        begun = 1_000 * int(messages[0]["content"][0]["text"].strip("Question ?"))
        for at, message in enumerate(messages):
            stored = SessionMessage(message, begun + at)
            self.repository.create_message(self.key, "default", stored)

    async def read(self) -> list[Any]:
        found = await cutbank.run_async(self.repository.list_messages, self.key, "default")
        return [message.message for message in found]


def open_strands_session(store: SessionStore, key: str) -> StrandsSession:
    from strands.types.session import (  # noqa: PLC0415 - as above
        Session,
        SessionAgent,
        SessionType,
    )

    from cutbank.frameworks.strands import CutbankSessionRepository  # noqa: PLC0415 - as above

    repository = CutbankSessionRepository(store)
    if repository.read_session(key) is None:
        repository.create_session(Session(key, SessionType.AGENT))
    if repository.read_agent(key, "default") is None:
        repository.create_agent(key, SessionAgent("default", {}, {}))
    return StrandsSession(repository, key)


def make_openhands_turn(number: int) -> list[dict[str, Any]]:
    from openhands.sdk import Message, TextContent  # noqa: PLC0415 - not everywhere
    from openhands.sdk.event import (  # noqa: PLC0415 - as above
        ActionEvent,
        AgentErrorEvent,
        MessageEvent,
    )
    from openhands.sdk.llm import MessageToolCall  # noqa: PLC0415 - as above

    call = {"id": f"call-{number}", "name": "read", "arguments": f'{{"path": "{number}.py"}}'}
    named = {"tool_name": "read", "tool_call_id": f"call-{number}"}

    def say(role: str, text: str) -> Message:
        return Message.model_validate({"role": role, "content": [TextContent(text=text)]})

    events = [
        MessageEvent(source="user", llm_message=say("user", f"Question {number}?")),
        ActionEvent(
            thought=[],
            reasoning_content="Hm.",
            tool_call=MessageToolCall(origin="completion", **call),
            llm_response_id=f"call-{number}",
            **named,
        ),
        AgentErrorEvent(error=make_result(number), **named),
        MessageEvent(source="agent", llm_message=say("assistant", f"Answer {number}.")),
    ]
    dumped = [event.model_dump(mode="json") for event in events]
    ids = {"timestamp": "2026-01-01T00:00:00"}
    return [one | ids | {"id": f"{number:08x}-{at}"} for at, one in enumerate(dumped)]


@dataclass
class OpenHandsConversation:
    """What a conversation of OpenHands shows its condenser, which forgets nothing meanwhile."""

    store: SessionStore
    key: str

    def make_condenser(self) -> Any:
        from cutbank.frameworks.openhands import CutbankCondenser  # noqa: PLC0415 - as above

        condenser = CutbankCondenser(session=self.key, limit=1_000_000)
        condenser.use_store(self.store)
        return condenser

    async def add(self, items: Sequence[Any]) -> None:
        from openhands.sdk.context.view import View  # noqa: PLC0415 - as above
        from openhands.sdk.event import Event  # noqa: PLC0415 - as above

        events = [Event.model_validate(one) for one in [*await self.read(), *items]]
        await self.make_condenser().acondense(View.model_construct(events=events))

    async def read(self) -> list[Any]:
        blocks = await cutbank.run_async(lambda: list(self.make_condenser().log.blocks()))
        return [one.item for one in blocks if one.item]


ADAPTERS = (
    Adapter(
        framework="claude_agent_sdk",
        open=open_claude_transcript,
        log=lambda transcript: transcript.store.log(transcript.key),
        add=lambda transcript, entries: transcript.add(entries),
        read=lambda transcript: transcript.read(),
        make_turn=make_claude_turn,
    ),
    Adapter(
        framework="agents",
        open=open_openai_session,
        log=lambda session: session.log,
        add=lambda session, items: session.add_items(list(items)),
        read=lambda session: session.get_items(-1),
        make_turn=make_openai_turn,
    ),
    Adapter(
        framework="google.adk",
        open=open_adk_session,
        log=lambda session: session.service.log(**session.names),
        add=lambda session, events: session.add(events),
        read=lambda session: session.read(),
        make_turn=make_adk_turn,
        stores_turns=False,
    ),
    Adapter(
        framework="pydantic_ai",
        open=PydanticConversation,
        log=lambda conversation: conversation.store.session(conversation.key),
        add=lambda conversation, messages: conversation.add(messages),
        read=lambda conversation: conversation.read(),
        make_turn=make_pydantic_ai_turn,
        has_writers=False,
    ),
    Adapter(
        framework="agent_framework",
        open=open_agent_framework_history,
        log=lambda history: history.provider.log(history.key),
        add=lambda history, messages: history.add(messages),
        read=lambda history: history.read(),
        make_turn=make_agent_framework_turn,
    ),
    Adapter(
        framework="strands",
        open=open_strands_session,
        log=lambda session: session.repository.log(session.key),
        add=lambda session, messages: session.add(messages),
        read=lambda session: session.read(),
        make_turn=make_strands_turn,
        stores_turns=False,
    ),
    Adapter(
        framework="openhands.sdk",
        open=OpenHandsConversation,
        log=lambda conversation: conversation.store.session(conversation.key),
        add=lambda conversation, events: conversation.add(events),
        read=lambda conversation: conversation.read(),
        make_turn=make_openhands_turn,
        has_writers=False,
    ),
)


def find_adapter(framework: str) -> Adapter:
    """Return an adapter, or skip the test where its framework is not installed."""
    if find_spec(framework.partition(".")[0]) is None or find_spec(framework) is None:
        why = (
            "it needs Python 3.12"
            if framework == "openhands.sdk"
            else "scripts/test-frameworks has it"
        )
        pytest.skip(f"{framework} is not installed: {why}")
    return next(adapter for adapter in ADAPTERS if adapter.framework == framework)


async def add_turns(database: str, framework: str, first: int, turns: int) -> None:
    """Store turns in the session `shared`, and print the number of each once it is stored."""
    adapter = find_adapter(framework)
    with cutbank.open(database) as store:
        session = adapter.open(store, "shared")
        for number in range(first, first + turns):
            await adapter.add(session, adapter.make_turn(number))
            print(number, flush=True)  # noqa: T201 - for the test that reads it
