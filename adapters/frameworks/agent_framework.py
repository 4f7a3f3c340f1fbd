"""Keeps the conversations of Microsoft's Agent Framework in a log, and sends models their view.

    import asyncio
    from agent_framework import Agent
    from agent_framework.openai import OpenAIChatCompletionClient
    from cutbank.frameworks.agent_framework import CutbankHistoryProvider

    async def main():
        history = CutbankHistoryProvider("sessions.db", limit=200_000)
        agent = Agent(
            OpenAIChatCompletionClient(model="gpt-5-mini"),
            "Be brief.",
            context_providers=[history],
            middleware=[history.retry],
            require_per_service_call_history_persistence=True,
        )
        print(await agent.run("Hello", session=agent.create_session(session_id="thread-1")))
        history.close()

    asyncio.run(main())

`history.log("thread-1")` is the stored session: what left the view is recalled from it.
"""

import json
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any
from uuid import uuid4

from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddleware,
    Content,
    FunctionTool,
    HistoryProvider,
    Message,
    SessionContext,
    SupportsAgentRun,
    UsageDetails,
)

from cutbank import (
    AgentLoop,
    Block,
    BlockKind,
    HistoryView,
    Item,
    Policy,
    SessionStore,
    StoredSession,
    ToolCall,
    ToolResult,
    Usage,
    ViewContent,
    ViewItem,
    list_items,
    register_renderer,
    run_async,
)

from .framework_adapter import FrameworkAdapter, append_items

_PROVIDER = "agent-framework"
"""Whose items the messages are, and the format that recorded calls name."""
_KINDS = {"user": BlockKind.USER, "assistant": BlockKind.ASSISTANT}


class CutbankHistoryProvider(FrameworkAdapter, HistoryProvider):
    """A history whose log keeps every message, and which loads the view, compacted if need be.

    `store` is an open store, or the address of a database that this one opens and closes.
    `policy`, `limit` and `model` are those of `session.loop()`; `flags` are those of every history
    provider: `load_messages`, `store_inputs`, `store_outputs`, ...
    """

    def __init__(
        self,
        store: SessionStore | str | Path = "sessions.db",
        *,
        namespace: str = "default",
        policy: str | Policy | None = None,
        limit: int | None = None,
        model: str | None = None,
        source_id: str = "cutbank",
        **flags: Any,
    ) -> None:
        HistoryProvider.__init__(self, source_id, **flags)
        FrameworkAdapter.__init__(
            self, store, namespace=namespace, policy=policy, limit=limit, model=model
        )
        self._sent: dict[str, HistoryView] = {}
        """What the model was sent before the newest answer that was stored, by session."""
        self._loaded: dict[str, AgentLoop] = {}
        """The loop that prepared the view which was loaded last, by session."""
        self.retry: ChatMiddleware = _Retry(self)
        """A middleware: stores instructions and tools; where each call is stored, asks again."""

    def log(self, session_id: str) -> StoredSession:
        """Return the stored session. Raises NotFoundError if there is none."""
        return self.store.session(session_id, namespace=self.namespace, create=False)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the view as messages, compacted first if the policy asks for it."""
        del state, kwargs  # nothing is kept in the session's own state
        return _write_messages(await run_async(self._prepare, session_id))

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Store messages in one transaction."""
        del state, kwargs  # as above
        if messages:
            await run_async(self._save, session_id, messages)

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Store what was said; record the call that it answers if the agent stores each call."""
        await super().after_run(agent=agent, session=session, context=context, state=state)
        view = self._sent.pop(context.session_id or "", None)
        self.take_loop(context.session_id or "")
        is_one_call = getattr(agent, "require_per_service_call_history_persistence", False)
        if view is None or context.response is None or not is_one_call:
            return
        if used := context.response.usage_details:
            await run_async(
                self._open(context.session_id).record_call,
                view,
                call_id=context.response.messages[-1].message_id or uuid4().hex,
                model=getattr(context.response.raw_representation, "model", None),
                renderer=_PROVIDER,
                usage=_read_usage(used),
            )

    def _open(self, session_id: str | None) -> StoredSession:
        if not session_id:
            raise ValueError(
                "no session is named: give agent.run() a session of agent.create_session()"
            )
        return self.store.session(session_id, namespace=self.namespace)

    def take_loop(self, session_id: str) -> AgentLoop | None:
        """Return, once, the loop that prepared the view of the call that is being made."""
        return self._loaded.pop(session_id, None)

    def _prepare(self, session_id: str | None) -> HistoryView:
        log = self._open(session_id)
        self._loaded[log.key] = loop = log.loop(**self._compaction)
        return loop.prepare()

    def _save(self, session_id: str | None, messages: Sequence[Message]) -> None:
        log = self._open(session_id)
        asked = list(takewhile(lambda message: message.role != "assistant", messages))
        with self.store.batch():
            append_items(self.store, log, [_read_message(message) for message in asked])
            self._sent[log.key] = log.view()
            answers = messages[len(asked) :]
            append_items(self.store, log, [_read_message(message) for message in answers])


class _Retry(ChatMiddleware):
    """Compacts after the model refused a call as too long, and lets it be made again.

    Only a middleware sees all instructions and tools that a call is made with, so it stores them.

    The framework loads the history for each call behind this middleware, so it is the smaller view
    then.
    """

    def __init__(self, history: CutbankHistoryProvider) -> None:
        self._history = history

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        session_id = context.session.session_id if context.session else ""
        asked = list(context.messages)
        self._history.take_loop(session_id)
        if session_id:
            await run_async(self._configure, session_id, context.options or {})
        try:
            await call_next()
        # Each client has its own error; handle_overflow raises all but an overflow again.
        except Exception as error:
            loop = self._history.take_loop(session_id)
            if loop is None:  # the history was loaded once for the whole run
                raise
            await run_async(loop.handle_overflow, error)
            context.messages = asked
            await call_next()

    def _configure(self, session_id: str, options: Mapping[str, Any]) -> None:
        instructions = options.get("instructions")
        history = self._history
        history.store.session(session_id, namespace=history.namespace).configure(
            system_prompt=instructions if isinstance(instructions, str) else None,
            tools=[
                tool.to_json_schema_spec()
                for tool in options.get("tools") or ()
                if isinstance(tool, FunctionTool)
            ],
        )


def _read_message(message: Message) -> Item:
    """Return a message as an item; a part of another type is a text of its JSON."""
    text = json.dumps(message.to_dict(), ensure_ascii=False, default=str)
    contents: list[dict[str, Any]] = json.loads(text)["contents"]
    kind = _KINDS.get(message.role, BlockKind.DEVELOPER)
    blocks = [_read_content(content, kind) for content in contents]
    return Item(text, blocks or [Block.note("", name=message.role)], _PROVIDER)


def _read_content(content: dict[str, Any], kind: BlockKind) -> Block | ToolCall | ToolResult:
    match content:
        case {"type": "text", "text": str(text)}:
            return Block(kind=kind, text=text)
        case {"type": "text_reasoning", "text": str(text)}:
            return Block.thinking(text)
        case {"type": "function_call", "call_id": str(call), "name": str(name)} if call:
            given = content.get("arguments") or "{}"
            return ToolCall(tool_call_id=call, name=name, arguments=given)
        case {"type": "function_result", "call_id": str(call)} if call:
            result = content.get("result", "")
            return ToolResult(
                tool_call_id=call,
                content=result if isinstance(result, str) else _write_json(result),
                is_error="exception" in content,
            )
        case {"type": "data", "uri": str(uri), "media_type": str(mime)} if ";base64," in uri:
            make = Block.image if mime.startswith("image/") else Block.document
            return make(b64decode(uri.partition(";base64,")[2]), mime=mime)
        case _:
            return Block(kind=kind, text=_write_json(content), name=content.get("type"))


def _write_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_messages(view: ViewContent) -> list[Message]:
    return [
        Message.from_dict(dict(item.json)) if isinstance(item.json, dict) else _write_message(item)
        for item in list_items(view, _PROVIDER)
    ]


def _write_message(item: ViewItem) -> Message:
    """Write what came without a message: the summary, or a block of another program."""
    match block := item.block:
        case ToolCall():
            call = Content.from_function_call(
                block.tool_call_id, block.name, arguments=block.arguments
            )
            return Message("assistant", [call])
        case ToolResult():
            result = Content.from_function_result(block.tool_call_id, result=item.text)
            return Message("tool", [result])
        case Block(kind=BlockKind.ASSISTANT):
            return Message("assistant", [item.text])
        case Block(kind=BlockKind.DEVELOPER):
            return Message("system", [item.text])
        case _:
            return Message("user", [item.text])


def _read_usage(used: UsageDetails) -> Usage:
    read = used.get("cache_read_input_token_count") or 0
    written = used.get("cache_creation_input_token_count") or 0
    return Usage(
        input=max(0, (used.get("input_token_count") or 0) - read - written),
        cache_read=read,
        cache_write=written,
        output=used.get("output_token_count") or 0,
        reasoning=used.get("reasoning_output_token_count") or 0,
    )


def _render(view: ViewContent) -> dict[str, Any]:
    """Render a view as messages, as JSON, for audits."""
    return {"messages": [message.to_dict() for message in _write_messages(view)]}


register_renderer(_PROVIDER, _render)
