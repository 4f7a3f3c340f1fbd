"""Keeps the messages of LangChain's agents in a log, and sends their view to the model.

    import cutbank
    from langchain.agents import create_agent
    from cutbank.frameworks.langchain import CutbankMiddleware
    from cutbank.frameworks.langgraph import CutbankSaver

    with cutbank.open("sessions.db") as store:
        middleware = [CutbankMiddleware(store, limit=200_000)]
        agent = create_agent(
            "openai:gpt-5-mini", checkpointer=CutbankSaver(store), middleware=middleware
        )
        thread = {"configurable": {"thread_id": "thread-1"}}
        print(agent.invoke({"messages": [("user", "Hello")]}, thread)["messages"][-1].text)

The state keeps all messages; `store.session("thread-1")` has them as blocks, with what each call
was sent.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_openai_messages,
    message_to_dict,
    messages_from_dict,
)
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config
from langgraph.runtime import Runtime

from cutbank import (
    AgentLoop,
    Block,
    BlockKind,
    HistoryView,
    Item,
    Parent,
    StoredSession,
    ToolCall,
    ToolResult,
    Usage,
    ViewContent,
    ViewItem,
    list_items,
    read_message,
    register_renderer,
    run_async,
)

from .framework_adapter import FrameworkAdapter

_PROVIDER = "langchain"
"""Whose items the messages are, and the format that recorded calls name."""


class CutbankMiddleware(FrameworkAdapter, AgentMiddleware[Any, Any, Any]):
    """Keeps an agent's messages in a log, and sends the model the log's view of them.

    The graph's state stays whole. The session is named by the thread; that of an agent which a
    tool runs is a session of its own, whose parent it is. `store` is an open store, or the address
    of a database that this one opens and closes. `policy`, `limit` and `model` are those of
    `session.loop()`.
    """

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Send the view, and a smaller one if the model refuses it as too long."""
        loop, view = self._prepare(request)
        try:
            response = handler(_show(request, view))
        except Exception as error:  # noqa: BLE001 - each provider has its own error for an overflow
            # Any other error is raised again.
            view = loop.handle_overflow(error)
            response = handler(_show(request, view))
        _record_call(loop, view, response)
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Do the same without blocking the event loop."""
        loop, view = await run_async(self._prepare, request)
        try:
            response = await handler(_show(request, view))
        except Exception as error:  # noqa: BLE001 - each provider has its own error for an overflow
            # Any other error is raised again.
            view = await run_async(loop.handle_overflow, error)
            response = await handler(_show(request, view))
        await run_async(_record_call, loop, view, response)
        return response

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Store what came after the last call of the model."""
        del runtime
        self._store(self._open_session(), state["messages"])

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        await run_async(self.after_agent, state, runtime)

    def _open_session(self) -> StoredSession:
        given = get_config()["configurable"]
        if "thread_id" not in given:
            raise ValueError(
                'no session is named: give a config with {"configurable": {"thread_id": ...}}'
            )
        thread = str(given["thread_id"])
        # The last part names the node that calls the model; what comes before it, the caller.
        caller = given.get("checkpoint_ns", "").rpartition("|")[0]
        if not caller:
            return self.store.session(thread, namespace=self.namespace)
        parent = Parent(namespace=self.namespace, key=thread)
        return self.store.session(f"{thread}/{caller}", namespace=self.namespace, parent=parent)

    def _prepare(self, request: ModelRequest[Any]) -> tuple[AgentLoop, HistoryView]:
        session = self._open_session()
        session.configure(
            system_prompt=request.system_prompt,
            tools=[convert_to_openai_tool(tool) for tool in request.tools],
        )
        self._store(session, request.messages)
        loop = session.loop(**self._compaction)
        return loop, loop.prepare()

    def _store(self, session: StoredSession, messages: Sequence[BaseMessage]) -> None:
        """Append the messages that the log lacks, and first take back those that the state lacks.

        A thread may go on from an earlier checkpoint, and a node may remove or change messages.
        """
        given = [_to_json(message) for message in messages]
        self._mirror.mirror(session, given, lambda at: _read_message(messages[at], given[at]))


def _show(request: ModelRequest[Any], view: HistoryView) -> ModelRequest[Any]:
    """Put the view in the place of the messages; those that it has whole are the state's own."""
    known = {message.id: message for message in request.messages if message.id}
    shown: list[Any] = []
    for item in list_items(view, _PROVIDER):
        if not isinstance(item.json, dict):
            shown.append(_write_message(item))
        elif not item.is_shortened:
            id = str(cast(dict[str, Any], item.json["data"]).get("id"))
            shown.append(known.get(id) or messages_from_dict([item.json])[0])
        else:
            shown += messages_from_dict([item.json])
    return request.override(messages=shown)


def _write_message(item: ViewItem) -> BaseMessage:
    """Write what came without a message: the summary, or a block of another program."""
    match block := item.block:
        case ToolCall():
            call = {"id": block.tool_call_id, "name": block.name, "args": block.parse_arguments()}
            return AIMessage("", tool_calls=[call])
        case ToolResult():
            return ToolMessage(item.text, tool_call_id=block.tool_call_id)
        case Block(kind=BlockKind.ASSISTANT):
            return AIMessage(item.text)
        case _:
            return HumanMessage(item.text)


def _to_json(message: BaseMessage) -> dict[str, Any]:
    """Return a message as JSON, without what cannot be JSON, such as the artifact of a tool."""
    text = json.dumps(message_to_dict(message), ensure_ascii=False, default=lambda _: None)
    return cast(dict[str, Any], json.loads(text))


def _read_message(message: BaseMessage, item: dict[str, Any]) -> Item:
    """Return a message as an item with its texts, thoughts, calls and results as blocks."""
    fields: dict[str, Any] = {"message_id": message.id}
    if isinstance(message, AIMessage):
        blocks: Sequence[Block | ToolCall | ToolResult] = list(_read_answer(message))
    else:
        blocks = read_message(cast(Any, convert_to_openai_messages(message)), "openai-chat").blocks
    if isinstance(message, ToolMessage):
        fields["is_error"] = message.status == "error"
    tied = [block.model_copy(update=fields) for block in blocks]
    return Item(json.dumps(item, ensure_ascii=False), tied, _PROVIDER)


def _read_answer(message: AIMessage) -> Iterator[Block | ToolCall]:
    """Yield what the model said, thought and called; a text of its JSON for all else."""
    parts = message.content_blocks
    if not parts:
        yield Block.assistant("")
    for part in parts:
        match part:
            case {"type": "text", "text": str(text)}:
                yield Block.assistant(text)
            case {"type": "reasoning"}:
                yield Block.thinking(str(part.get("reasoning", "")))
            case {"type": "tool_call", "id": str(call), "name": str(name), "args": dict(given)}:
                yield ToolCall(tool_call_id=call, name=name, arguments=given)
            case _:
                yield Block.assistant(json.dumps(part, ensure_ascii=False, default=lambda _: None))


def _record_call(loop: AgentLoop, view: HistoryView, response: ModelResponse[Any]) -> None:
    for message in response.result:
        if isinstance(message, AIMessage):
            said = message.response_metadata
            loop.record_call(
                view,
                call_id=message.id,
                model=said.get("model_name") or said.get("model"),
                renderer=_PROVIDER,
                usage=_read_usage(message),
            )
            return


def _read_usage(message: AIMessage) -> Usage | None:
    used = message.usage_metadata
    if used is None:
        return None
    given, written = used.get("input_token_details", {}), used.get("output_token_details", {})
    read, cached = given.get("cache_read", 0), given.get("cache_creation", 0)
    return Usage(
        input=used["input_tokens"] - read - cached,
        cache_read=read,
        cache_write=cached,
        output=used["output_tokens"],
        reasoning=written.get("reasoning", 0),
    )


def _render(view: ViewContent) -> dict[str, Any]:
    """Render a view as messages of LangChain, as JSON, for audits."""
    return {
        "messages": [
            item.json if isinstance(item.json, dict) else message_to_dict(_write_message(item))
            for item in list_items(view, _PROVIDER)
        ]
    }


register_renderer(_PROVIDER, _render)
