"""Keeps the sessions of Strands' agents in a log, and sends their view to the model.

    import cutbank
    from cutbank.frameworks.strands import CutbankConversationManager, CutbankSessionRepository
    from strands import Agent
    from strands.models.openai import OpenAIModel
    from strands.session import RepositorySessionManager

    with cutbank.open("sessions.db") as store:
        repository = CutbankSessionRepository(store)
        agent = Agent(
            OpenAIModel(model_id="gpt-5-mini"),
            session_manager=RepositorySessionManager("thread-1", repository),
            conversation_manager=CutbankConversationManager(
                repository, "thread-1", limit=200_000
            ),
            callback_handler=None,
        )
        print(agent("Hello"))

`repository.log("thread-1")` is the stored session: what left the view is recalled from it.
"""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from strands.agent.conversation_manager import ConversationManager
from strands.hooks import AfterModelCallEvent, BeforeModelCallEvent, HookRegistry
from strands.session.session_repository import SessionRepository
from strands.types.content import ContentBlock, Message
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, encode_bytes_values

from cutbank import (
    AgentLoop,
    Block,
    BlockKind,
    HistoryView,
    Item,
    NotFoundError,
    Policy,
    SessionRecords,
    SessionStore,
    StoredSession,
    ToolCall,
    ToolResult,
    Usage,
    ViewContent,
    ViewItem,
    list_items,
    recognize_overflow,
    register_renderer,
)

from .framework_adapter import ItemMirror, append_items

if TYPE_CHECKING:
    from strands.agent.agent import Agent
    from strands.multiagent import MultiAgentBase

_PROVIDER = "strands"
"""Whose items the messages are, and the format that recorded calls name."""


class CutbankSessionRepository(SessionRepository):
    """A repository of Strands whose agents are sessions of cutbank: messages are blocks.

    The agent `default` of a session has the session's name, and others `SESSION/AGENT`. What
    Strands knows of the session and its agents are records.
    """

    def __init__(self, store: SessionStore, *, namespace: str = "default") -> None:
        self.store = store
        self.namespace = namespace
        self._mirror = ItemMirror(store)

    def log(self, session_id: str, agent_id: str = "default") -> StoredSession:
        """Return the stored session of an agent. Raises NotFoundError if there is none."""
        name = _name(session_id, agent_id)
        return self.store.session(name, namespace=self.namespace, create=False)

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        del kwargs
        if self.read_session(session.session_id):
            raise SessionException(f"the session {session.session_id!r} exists: read it")
        stored = self.store.session(session.session_id, namespace=self.namespace)
        stored.records.put("session", session.to_dict())
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        del kwargs
        found = self._read_record(session_id, "session")
        return Session.from_dict(found) if found else None

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        del kwargs
        self._find_session(session_id)
        name = _name(session_id, session_agent.agent_id)
        if self._read_record(name, "agent"):
            raise SessionException(f"the agent {name!r} exists: read it")
        stored = self.store.session(name, namespace=self.namespace)
        stored.records.put("agent", session_agent.to_dict())

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        del kwargs
        found = self._read_record(_name(session_id, agent_id), "agent")
        return SessionAgent.from_dict(found) if found else None

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        del kwargs
        agent = self._find_agent(session_id, session_agent.agent_id)
        agent.records.put("agent", session_agent.to_dict())

    def create_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> None:
        """Store a message. Raises SessionException if another one has its id."""
        del kwargs
        agent = self._find_agent(session_id, agent_id)
        id = session_message.message_id
        if agent.find(f"message/{id}"):
            raise SessionException(f"the message {id} of {agent.key!r} exists: update it")
        append_items(self.store, agent, [_read_item(session_message)], [f"message/{id}"])

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **kwargs: Any
    ) -> SessionMessage | None:
        del kwargs
        found = self.list_messages(session_id, agent_id)
        return next((one for one in found if one.message_id == message_id), None)

    def update_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> None:
        """Put a message in the place of the one with its id, which leaves every view at once."""
        del kwargs
        agent = self._find_agent(session_id, agent_id)
        messages = self.list_messages(session_id, agent_id)
        ids = [message.message_id for message in messages]
        if session_message.message_id not in ids:
            raise SessionException(
                f"no message {session_message.message_id} is in {agent.key!r}: create it"
            )
        messages[ids.index(session_message.message_id)] = session_message
        given = [message.to_dict() for message in messages]
        self._mirror.mirror(agent, given, lambda at: _read_item(messages[at]))

    def list_messages(
        self,
        session_id: str,
        agent_id: str,
        limit: int | None = None,
        offset: int = 0,
        **kwargs: Any,
    ) -> list[SessionMessage]:
        """List messages by their ids, `limit` of them after the first `offset`."""
        del kwargs
        try:
            agent = self.log(session_id, agent_id)
        except NotFoundError:
            return []
        items = [one.item for one in agent.blocks() if one.item is not None]
        messages = [SessionMessage.from_dict(cast(dict[str, Any], item)) for item in items]
        messages.sort(key=lambda message: message.message_id)
        return messages[offset : None if limit is None else offset + limit]

    def create_multi_agent(
        self, session_id: str, multi_agent: "MultiAgentBase", **kwargs: Any
    ) -> None:
        del kwargs
        self._put_multi_agent(session_id, multi_agent)

    def read_multi_agent(
        self, session_id: str, multi_agent_id: str, **kwargs: Any
    ) -> dict[str, Any] | None:
        del kwargs
        return self._read_record(session_id, f"multi-agent/{multi_agent_id}")

    def update_multi_agent(
        self, session_id: str, multi_agent: "MultiAgentBase", **kwargs: Any
    ) -> None:
        del kwargs
        if self.read_multi_agent(session_id, multi_agent.id) is None:
            raise SessionException(f"no {multi_agent.id!r} is in {session_id!r}: create it")
        self._put_multi_agent(session_id, multi_agent)

    def _put_multi_agent(self, session_id: str, multi_agent: "MultiAgentBase") -> None:
        state = encode_bytes_values(multi_agent.serialize_state())
        self._find_session(session_id).put(f"multi-agent/{multi_agent.id}", state)

    def _find_session(self, session_id: str) -> SessionRecords:
        if self._read_record(session_id, "session") is None:
            raise SessionException(f"no session {session_id!r} is stored: create it")
        return self.store.session(session_id, namespace=self.namespace).records

    def _find_agent(self, session_id: str, agent_id: str) -> StoredSession:
        if self._read_record(_name(session_id, agent_id), "agent") is None:
            raise SessionException(
                f"no agent {agent_id!r} is in the session {session_id!r}: create it"
            )
        return self.log(session_id, agent_id)

    def _read_record(self, name: str, record: str) -> dict[str, Any] | None:
        try:
            session = self.store.session(name, namespace=self.namespace, create=False)
        except NotFoundError:
            return None
        found = session.records.get(record)
        return cast(dict[str, Any], found.value) if found else None


def _name(session_id: str, agent_id: str) -> str:
    return session_id if agent_id == "default" else f"{session_id}/{agent_id}"


class CutbankConversationManager(ConversationManager):
    """Lets an agent hold the view of its log, from before each call of the model on.

    The repository keeps all messages. `policy`, `limit` and `model` are those of `session.loop()`.
    """

    def __init__(
        self,
        repository: CutbankSessionRepository,
        session_id: str,
        *,
        policy: str | Policy | None = None,
        limit: int | None = None,
        model: str | None = None,
    ) -> None:
        super().__init__()
        self.repository = repository
        self.session_id = session_id
        self._compaction: dict[str, Any] = {"policy": policy, "limit": limit, "model": model}
        self._served: tuple[AgentLoop, HistoryView] | None = None

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        super().register_hooks(registry, **kwargs)
        registry.add_callback(BeforeModelCallEvent, self._serve_view)
        registry.add_callback(AfterModelCallEvent, self._record_call)

    def apply_management(self, agent: "Agent", **kwargs: Any) -> None:
        """Do nothing: the view is served before a call, not after an answer."""

    def reduce_context(self, agent: "Agent", e: Exception | None = None, **kwargs: Any) -> None:
        """Compact after the model refused a view as too long; serve the view if it did not.

        Raises ContextOverflowError if the view cannot shrink.
        """
        del kwargs
        session = self.repository.log(self.session_id, agent.agent_id)
        loop = session.loop(**self._compaction)
        if e is None:
            view = loop.prepare()
        else:
            # Strands has recognized it, whatever the provider says.
            said = {"code": "context_length_exceeded", "message": str(e)}
            view = loop.handle_overflow(e if recognize_overflow(e) else {"error": said})
        agent.messages[:] = _show(view, agent.messages)

    def _serve_view(self, event: BeforeModelCallEvent) -> None:
        agent = event.agent
        session = self.repository.log(self.session_id, agent.agent_id)
        tools = agent.tool_registry.get_all_tool_specs()
        session.configure(
            system_prompt=agent.system_prompt,
            tools=json.loads(json.dumps([{"toolSpec": spec} for spec in tools], default=str)),
        )
        loop = session.loop(**self._compaction)
        view = loop.prepare()
        agent.messages[:] = _show(view, agent.messages)
        self._served = loop, view

    def _record_call(self, event: AfterModelCallEvent) -> None:
        if self._served is None or event.stop_response is None:
            return
        loop, view = self._served
        self._served = None
        loop.record_call(
            view,
            model=event.agent.model.get_config().get("model_id"),
            renderer=_PROVIDER,
            usage=_read_usage(event.stop_response.message),
            stop_reason=event.stop_response.stop_reason,
        )


def _show(view: HistoryView, held: Sequence[Message]) -> list[Message]:
    """Return what a view sends; the messages that it has whole are those that the agent holds."""
    known = {message.get("tracking_id"): message for message in held}
    shown: list[Message] = []
    for item in list_items(view, _PROVIDER):
        message = _get_message(item)
        if not item.is_shortened and "tracking_id" in message:
            message = known.get(message["tracking_id"], message)
        if shown and shown[-1]["role"] == message["role"]:
            # Some providers demand that the roles alternate.
            content = [*shown[-1]["content"], *message["content"]]
            shown[-1] = {**message, "content": content}
        else:
            shown.append(message)
    return shown


def _get_message(item: ViewItem) -> Message:
    if item.json is not None:
        return SessionMessage.from_dict(cast(dict[str, Any], item.json)).to_message()
    block = item.block
    content: Any
    match block:
        case ToolCall():
            use = {"toolUseId": block.tool_call_id, "name": block.name}
            content = {"toolUse": {**use, "input": block.parse_arguments()}}
        case ToolResult():
            status = "error" if block.is_error else "success"
            result = {"toolUseId": block.tool_call_id, "status": status}
            content = {"toolResult": {**result, "content": [{"text": item.text}]}}
        case _:
            content = {"text": item.text}
    role = "assistant" if item.role == "assistant" else "user"
    return cast(Message, {"role": role, "content": [content]})


def _read_item(message: SessionMessage) -> Item:
    """Return a message as an item; what a guardrail redacted is in none of its blocks."""
    said = message.to_message()
    blocks = [_read_block(content, said["role"]) for content in said["content"]]
    return Item(message.to_dict(), blocks or [_make_block("", said["role"])], _PROVIDER)


def _read_block(content: ContentBlock, role: str) -> Block | ToolCall | ToolResult:
    match content:
        case {"text": str(text)}:
            return _make_block(text, role)
        case {"reasoningContent": {"reasoningText": {"text": str(text)}}}:
            return Block.thinking(text)
        case {"toolUse": use}:
            return ToolCall(
                tool_call_id=use["toolUseId"], name=use["name"], arguments=json.dumps(use["input"])
            )
        case {"toolResult": result}:
            return ToolResult(
                tool_call_id=result["toolUseId"],
                content="\n".join(_read_result(result["content"])),
                is_error=result["status"] == "error",
            )
        case {"image": {"format": kind, "source": {"bytes": bytes(data)}}} if role == "user":
            return Block.image(data, mime=f"image/{kind}")
        case _:
            return _make_block(_dump_text(content), role)


def _read_result(content: Sequence[Any]) -> Iterator[str]:
    for part in content:
        match part:
            case {"text": str(text)}:
                yield text
            case {"json": value}:
                yield _dump_text(value)
            case _:
                yield _dump_text(part)


def _dump_text(value: Any) -> str:
    return json.dumps(encode_bytes_values(value), ensure_ascii=False)


def _make_block(text: str, role: str) -> Block:
    return Block(kind=BlockKind.ASSISTANT if role == "assistant" else BlockKind.USER, text=text)


def _read_usage(message: Message) -> Usage | None:
    used = message.get("metadata", {}).get("usage")
    if used is None:
        return None
    read, written = used.get("cacheReadInputTokens", 0), used.get("cacheWriteInputTokens", 0)
    return Usage(
        # What `inputTokens` says of the cache differs between Strands' models.
        input=used["totalTokens"] - used["outputTokens"] - read - written,
        cache_read=read,
        cache_write=written,
        output=used["outputTokens"],
    )


def _render(view: ViewContent) -> dict[str, Any]:
    """Render a view as messages of Strands, as JSON, for audits."""
    messages = [_get_message(item) for item in list_items(view, _PROVIDER)]
    return {"messages": encode_bytes_values(messages)}


register_renderer(_PROVIDER, _render)
