"""Keeps the conversations of Pydantic AI's agents in a log, and sends their view to the model.

    import cutbank
    from cutbank.frameworks.pydantic_ai import CutbankHistory
    from pydantic_ai import Agent

    with cutbank.open("sessions.db") as store:
        history = CutbankHistory(store, limit=200_000)
        agent = Agent("openai-chat:gpt-5-mini", capabilities=[history])
        print(agent.run_sync("Hello", conversation=history.load("thread-1")).output)

A run's own history stays whole; `store.session("thread-1")` has it as blocks, with what each call
was sent.
"""

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from copy import copy
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.agent import AgentRunResult
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import (
    Model,
    ModelRequestContext,
    ModelRequestParameters,
    StreamedResponse,
)
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage
from pydantic_core import to_jsonable_python

from cutbank import (
    AgentLoop,
    Block,
    BlockKind,
    HistoryView,
    Item,
    NotFoundError,
    Parent,
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

from .framework_adapter import FrameworkAdapter, ItemMirror

_PROVIDER = "pydantic-ai"
"""Whose items the messages are, and the format that recorded calls name."""
_running: ContextVar[str | None] = ContextVar("cutbank_pydantic_ai_running", default=None)
"""The session of the run that the current task belongs to."""


class CutbankHistory(FrameworkAdapter, AbstractCapability[Any]):
    """Keeps an agent's messages in a log, and sends the model the log's view of them.

    The session is named by the run's `conversation_id`; that of an agent which a tool runs has the
    other's as its parent. `store` is an open store, or the address of a database that this one
    opens and closes. `policy`, `limit` and `model` are those of `session.loop()`.
    """

    _history: Sequence[ModelMessage] = ()
    """The run's own messages, which it goes on adding to."""
    _messages: Sequence[ModelMessage] = ()
    """Those that were stored."""
    _positions: Sequence[int] = ()
    """Where the log has each of them."""
    _served: tuple[AgentLoop, HistoryView] | None = None
    """The view that the current call was sent, and the loop that made it."""

    def load(self, conversation_id: str) -> Conversation:
        """Return a stored conversation, for the `conversation=` of a run; an empty one if new."""
        try:
            session = self.store.session(conversation_id, namespace=self.namespace, create=False)
        except NotFoundError:
            return Conversation(conversation_id=conversation_id)
        messages = load_messages([one.item for one in session.blocks() if one.item is not None])
        usage = RunUsage()
        for message in messages:
            if isinstance(message, ModelResponse):
                usage.incr(message.usage)
                usage.requests += 1
        return Conversation(messages=messages, usage=usage, conversation_id=conversation_id)

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """Return a capability for this run alone."""
        del ctx
        return copy(self)

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: WrapRunHandler
    ) -> AgentRunResult[Any]:
        """Store what a run has said, also if it fails."""
        session = await run_async(self._open_session, ctx)
        token = _running.set(session.key)
        try:
            result = await handler()
            self._history = result.all_messages()
            return result
        finally:
            _running.reset(token)
            if self._history:
                await run_async(self._store, session, self._history)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Send the view in the place of the messages; the run's history keeps them all."""
        request_context.messages = await run_async(self._prepare, ctx, request_context)
        return request_context

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        response: ModelResponse,
    ) -> ModelResponse:
        """Record which view the model answered, and the tokens that it took."""
        del ctx, request_context
        if self._served is not None:
            loop, view = self._served
            self._served = None
            await run_async(
                loop.record_call,
                view,
                call_id=response.provider_response_id,
                model=response.model_name,
                renderer=_PROVIDER,
                usage=_read_usage(response),
                stop_reason=response.finish_reason,
            )
        return response

    def get_wrapper_model(self, model: Model) -> Model:
        """Let the model be asked again where it refuses a view as too long."""
        return _RetryingModel(model, self)

    async def shrink(self, error: Exception) -> list[ModelMessage]:
        """Return a smaller view after the model refused one; raise any other error again."""
        if self._served is None:
            raise error
        loop, _ = self._served
        view = await run_async(loop.handle_overflow, error)
        self._served = loop, view
        return self._show(view)

    def _open_session(self, ctx: RunContext[Any]) -> StoredSession:
        caller, name = _running.get(), str(ctx.conversation_id)
        parent = None
        if caller is not None:
            parent = Parent(namespace=self.namespace, key=caller)
            name = f"{caller}/{ctx.run_id}" if name == caller else name
        return self.store.session(name, namespace=self.namespace, parent=parent)

    def _prepare(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> list[ModelMessage]:
        session = self.store.session(str(_running.get()), namespace=self.namespace)
        asked = request_context.model_request_parameters
        session.configure(
            system_prompt="\n\n".join(
                [part.content for part in asked.instruction_parts or ()]
                + [part.content for part in _list_system_parts(ctx.messages)]
            )
            or None,
            tools=[
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description or "",
                        "parameters": tool.parameters_json_schema,
                    },
                }
                for tool in (*asked.function_tools, *asked.output_tools)
            ],
        )
        self._history = ctx.messages
        self._store(session, self._history)
        loop = session.loop(**self._compaction)
        view = loop.prepare()
        self._served = loop, view
        return self._show(view)

    def _store(self, session: StoredSession, messages: Sequence[ModelMessage]) -> None:
        self._messages = list(messages)
        self._positions = mirror_messages(self._mirror, session, self._messages)

    def _show(self, view: HistoryView) -> list[ModelMessage]:
        """Return what a view sends; the messages that it has whole are the run's own."""
        known = dict(zip(self._positions, self._messages, strict=True))
        shown: list[ModelMessage] = []
        for item in list_items(view, _PROVIDER):
            if item.json is None:
                shown.append(_write_message(item))
            elif item.is_shortened:
                shown += load_messages([item.json])
            else:
                position = item.entries[-1].position
                shown.append(known.get(position) or load_messages([item.json])[0])
        system = _list_system_parts(self._messages)
        if system and not _list_system_parts(shown):
            shown.insert(0, ModelRequest(parts=system))
        return shown


class _RetryingModel(WrapperModel):
    """A model that is asked again with a smaller view where it refuses one as too long."""

    def __init__(self, wrapped: Model, history: CutbankHistory) -> None:
        super().__init__(wrapped)
        self._history = history

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        try:
            return await super().request(messages, model_settings, model_request_parameters)
        except Exception as error:  # noqa: BLE001 - any other error is raised again
            smaller = await self._history.shrink(error)
            return await super().request(smaller, model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        rest = model_settings, model_request_parameters, run_context
        async with AsyncExitStack() as stack:
            try:
                stream = await stack.enter_async_context(super().request_stream(messages, *rest))
            except Exception as error:  # noqa: BLE001 - any other error is raised again
                smaller = await self._history.shrink(error)
                stream = await stack.enter_async_context(super().request_stream(smaller, *rest))
            yield stream


def mirror_messages(
    mirror: ItemMirror, session: StoredSession, messages: Sequence[ModelMessage]
) -> list[int]:
    """Let a session have exactly these messages, and return the position of each."""
    given = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return mirror.mirror(
        session, given, lambda at: Item(given[at], _read_blocks(messages[at]), _PROVIDER)
    )


def load_messages(items: Sequence[Any]) -> list[ModelMessage]:
    return ModelMessagesTypeAdapter.validate_python(items)


def _list_system_parts(messages: Sequence[ModelMessage]) -> list[SystemPromptPart]:
    return [
        part
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, SystemPromptPart)
    ]


def _read_blocks(message: ModelMessage) -> list[Block | ToolCall | ToolResult]:
    """Return what a message says; the system prompt is the session's, and no block."""
    if isinstance(message, ModelResponse):
        return list(_read_answer(message)) or [Block.assistant("")]
    return list(_read_request(message)) or [Block(kind=BlockKind.DEVELOPER)]


def _read_request(message: ModelRequest) -> Iterator[Block | ToolResult]:
    for part in message.parts:
        match part:
            case SystemPromptPart():
                continue
            case UserPromptPart(content=str(text)):
                yield Block.user(text)
            case UserPromptPart(content=contents):
                for content in contents:
                    yield _read_content(content)
            case ToolReturnPart():
                yield ToolResult(
                    tool_call_id=part.tool_call_id,
                    content=part.model_response_str(wrap_if_error=False),
                    is_error=part.outcome != "success",
                )
            case _:
                yield Block(kind=BlockKind.DEVELOPER, text=_dump_text(part))


def _read_content(content: Any) -> Block:
    match content:
        case str(text):
            return Block.user(text)
        case BinaryContent(data=data, media_type=mime) if content.is_image:
            return Block.image(data, mime=mime)
        case BinaryContent(data=data, media_type=mime) if content.is_document:
            return Block.document(data, mime=mime)
        case _:
            return Block.user(_dump_text(content))


def _read_answer(message: ModelResponse) -> Iterator[Block | ToolCall]:
    for part in message.parts:
        match part:
            case TextPart():
                yield Block.assistant(part.content)
            case ThinkingPart():
                yield Block.thinking(part.content)
            case ToolCallPart():
                yield ToolCall(
                    tool_call_id=part.tool_call_id, name=part.tool_name, arguments=part.args or "{}"
                )
            case _:
                yield Block.assistant(_dump_text(part))


def _dump_text(part: Any) -> str:
    """Return a part as JSON text, where no kind of block is its own."""
    return json.dumps(to_jsonable_python(part), ensure_ascii=False)


def _write_message(item: ViewItem) -> ModelMessage:
    """Write what came without a message: the summary, or a block of another program."""
    match block := item.block:
        case ToolCall():
            call = ToolCallPart(block.name, block.arguments, block.tool_call_id)
            return ModelResponse(parts=[call])
        case ToolResult():
            return ModelRequest(parts=[ToolReturnPart("", item.text, block.tool_call_id)])
        case Block(kind=BlockKind.ASSISTANT | BlockKind.THINKING):
            return ModelResponse(parts=[TextPart(item.text)])
        case _:
            return ModelRequest(parts=[UserPromptPart(item.text)])


def _read_usage(response: ModelResponse) -> Usage | None:
    used = response.usage
    if not used.has_values():
        return None
    return Usage(
        input=used.input_tokens - used.cache_read_tokens - used.cache_write_tokens,
        cache_read=used.cache_read_tokens,
        cache_write=used.cache_write_tokens,
        output=used.output_tokens,
        reasoning=used.details.get("reasoning_tokens", 0),
    )


def _render(view: ViewContent) -> dict[str, Any]:
    """Render a view as messages of Pydantic AI, as JSON, for audits."""
    messages = [
        load_messages([item.json])[0] if item.json is not None else _write_message(item)
        for item in list_items(view, _PROVIDER)
    ]
    return {"messages": ModelMessagesTypeAdapter.dump_python(messages, mode="json")}


register_renderer(_PROVIDER, _render)
