"""Keeps the conversations of the OpenAI Agents SDK in a log, and sends their view to the model.

    import asyncio
    from agents import Agent, Runner
    from cutbank.frameworks.openai_agents import CutbankSession

    session = CutbankSession("thread-1", "sessions.db", limit=200_000)
    agent = Agent("Helper", instructions="Answer in one sentence.")
    run = Runner.run(
        agent, "Hello", session=session, run_config=session.run_config(), hooks=session.hooks
    )
    print(asyncio.run(run).final_output)
    session.close()

`session.log` is the stored session: what left the view is recalled from it.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import replace
from inspect import isawaitable
from itertools import groupby, islice
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from agents import (
    Agent,
    Model,
    ModelProvider,
    ModelResponse,
    ModelRetryAdvice,
    ModelRetryAdviceRequest,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    SessionSettings,
)
from agents.items import TResponseInputItem, TResponseStreamEvent
from agents.memory import OpenAIResponsesCompactionArgs
from agents.run_config import CallModelData, CallModelInputFilter, ModelInputData

import cutbank
from cutbank import (
    AsyncAgentLoop,
    Block,
    BlockKind,
    HistoryView,
    Item,
    NothingToCompactError,
    Policy,
    RecalledBlock,
    SessionStore,
    ToolCall,
    ToolResult,
    Usage,
    ViewContent,
    list_items,
    run_async,
)

from .framework_adapter import FrameworkAdapter, append_items

PROVIDER = "openai-responses"
RENDERER = "openai-agents"
"""The format that recorded calls name, in which a view is sent."""
_MODELS_KINDS = {BlockKind.ASSISTANT, BlockKind.THINKING, BlockKind.TOOL_CALL}
_UNSENT_KINDS = {BlockKind.ARTIFACT, BlockKind.NOTE}


class CutbankSession(FrameworkAdapter):
    """A `Session` of the Agents SDK whose log keeps every item, and which gives the view to send.

    `store` is an open store, or the address of a database that this session opens and closes.
    `policy`, `limit` and `model` are those of `session.loop()`.
    """

    def __init__(
        self,
        session_id: str,
        store: SessionStore | str | Path = "sessions.db",
        *,
        namespace: str = "default",
        policy: str | Policy | None = None,
        limit: int | None = None,
        model: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = session_settings
        super().__init__(store, namespace=namespace, policy=policy, limit=limit, model=model)
        self.log = self.store.session(session_id, namespace=namespace)
        """The stored session, with all of its verbs: recall, pin, fork, compact."""
        self.hooks: RunHooks[Any] = _CallRecorder(self)
        """Hooks of a run that record each call: what was sent, and the tokens it took."""
        self._loop = AsyncAgentLoop(self.log.loop(**self._compaction))
        self._given: tuple[int, Sequence[TResponseInputItem]] = (0, ())
        """The position of the view that the current run began with, and its items."""
        self._sent: HistoryView | None = None
        self.asked: Model | None = None
        """The model that is asked now, if `run_config` or `retry` made it known."""
        self._unstored: Sequence[TResponseInputItem] = ()
        """What the runner sent behind that view and had not stored yet."""
        self._is_closed = False

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the view as items, compacted first if the policy asks for it.

        With a limit, here or in the session's settings, return the newest items as they came.
        """
        self._check_open()
        if limit is None and self.session_settings:
            limit = self.session_settings.limit
        if limit is not None:
            return await run_async(self._list_newest, limit)
        view = await self._loop.prepare()
        items = render_items(view)["input"]
        self._given = view.coordinate.position, [*items]
        return items

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items in one transaction."""
        self._check_open()
        if items:
            await run_async(self._append, items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take back the newest item, and return it as it came; None if there is none."""
        self._check_open()
        newest = await run_async(self.log.pop)
        return _get_item(newest) if newest else None

    async def clear_session(self) -> None:
        """Take back all items. They stay in the log; `store.erase` removes them."""
        self._check_open()
        await run_async(self.log.clear)

    async def run_compaction(self, args: OpenAIResponsesCompactionArgs | None = None) -> None:
        """Compact if the policy asks for it; with `force`, whatever its threshold.

        The runner calls this after a turn.
        """
        self._check_open()
        if not (args and args.get("force")):
            await self._loop.prepare()
            return
        try:
            await cutbank.AsyncSession(self.log).compact(**self._compaction)
        except NothingToCompactError:
            return

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """Return a copy of `config` that serves the view before each call of the model.

        Without it a run reads the session once, and is not compacted before it ends. A filter that
        `config` has is given the view. A model that is found by its name, or that `config` has, is
        asked again with a smaller view where it refuses one as too long.
        """
        config = config or RunConfig()
        inner = config.call_model_input_filter

        async def serve_view(data: CallModelData[Any]) -> ModelInputData:
            served = await self._serve_view(data.model_data)
            return await _apply(inner, replace(data, model_data=served)) if inner else served

        given = config.model
        return replace(
            config,
            call_model_input_filter=serve_view,
            model=self.retry(given) if isinstance(given, Model) else given,
            model_provider=_RetryingProvider(config.model_provider, self),
        )

    def retry(self, model: Model) -> Model:
        """Return a model for an agent of its own, which is asked again as those of `run_config`."""
        return _RetryingModel(model, self)

    async def shrink(self, error: Exception) -> list[TResponseInputItem]:
        """Return a smaller view after the model refused one; raise any other error again."""
        if self._sent is None:
            raise error
        if await self._was_stored(self._sent):
            self._unstored = ()
        self._sent = view = await self._loop.handle_overflow(error)
        return [*render_items(view)["input"], *self._unstored]

    async def record_response(self, response: ModelResponse) -> None:
        """Record that the model answered the view that was served last, for hooks of your own."""
        view, self._sent = self._sent, None
        model, self.asked = self.asked, None
        if view and self._unstored:
            view = await run_async(self.log.view) if await self._was_stored(view) else None
        if view is not None:
            used = response.usage
            cached = used.input_tokens_details.cached_tokens or 0
            usage = Usage(
                input=used.input_tokens - cached,
                cache_read=cached,
                output=used.output_tokens,
                reasoning=used.output_tokens_details.reasoning_tokens,
            )
            await self._loop.record_call(
                view,
                call_id=response.response_id,
                model=getattr(model, "model", None),
                renderer=RENDERER,
                usage=usage if used.requests else None,
            )

    def close(self) -> None:
        """Close the database, if this session opened it."""
        self._is_closed = True
        super().close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError(f"the session {self.session_id!r} is closed: make another one")

    async def _serve_view(self, data: ModelInputData) -> ModelInputData:
        """Return the newest view in place of the history that the run has; the same view is kept.

        Only if the input begins with all that was given and stored since, for a handoff may have
        changed it and another process may have added to the session. A streamed run stores its
        prompt while the model answers.
        """
        position, given = self._given
        since = await run_async(self._list_since, position)
        known = len(given) + len(since)
        if data.input[:known] != [*given, *since]:
            self._sent = None
            return data
        self._unstored = data.input[known:]
        await run_async(self.log.configure, system_prompt=data.instructions)
        self._sent = view = await self._loop.prepare()
        served = [*render_items(view)["input"], *self._unstored]
        return ModelInputData(input=served, instructions=data.instructions)

    async def _was_stored(self, view: HistoryView) -> bool:
        """Check whether what was sent behind a view, and nothing else, was stored since."""
        return await run_async(self._list_since, view.coordinate.position) == self._unstored

    def _list_newest(self, limit: int) -> list[TResponseInputItem]:
        """Return the newest items in order; all of them for a negative limit."""
        return list(islice(self._iter_newest(), limit if limit >= 0 else None))[::-1]

    def _list_since(self, position: int) -> list[TResponseInputItem]:
        return list(self._iter_newest(position))[::-1]

    def _append(self, items: Sequence[TResponseInputItem]) -> None:
        read = [cutbank.read_message(cast(dict[str, Any], item), PROVIDER) for item in items]
        append_items(self.store, self.log, list(_tie_answers(read)))

    def _iter_newest(self, after: int = 0) -> Iterator[TResponseInputItem]:
        """Yield the items that were stored after a position, newest first."""
        pieces = 0
        for block in self.log.blocks(after=after, newest_first=True):
            pieces = len(block.pieces) if block.pieces else pieces - 1
            if block.pieces or (pieces < 1 and block.block.kind not in _UNSENT_KINDS):
                yield _get_item(block)


def _get_item(stored: RecalledBlock) -> TResponseInputItem:
    item = stored.item or _write_item(stored.block, stored.block.text)
    return cast(TResponseInputItem, item)


def render_items(view: ViewContent) -> dict[str, Any]:
    """Render a view as the SDK's items: those that it stored come back as they were."""
    items = [item.json or _write_item(item.block, item.text) for item in list_items(view, PROVIDER)]
    return {"input": [item for item in items if item]}


cutbank.register_renderer(RENDERER, render_items)


def _write_item(block: Block | ToolCall | ToolResult | None, text: str) -> dict[str, Any] | None:
    """Write what came without an item: a summary, or a block of another program."""
    match block:
        case ToolCall():
            call = {"call_id": block.tool_call_id, "name": block.name}
            return {"type": "function_call", **call, "arguments": block.arguments}
        case ToolResult():
            return {"type": "function_call_output", "call_id": block.tool_call_id, "output": text}
        case Block(kind=BlockKind.THINKING):
            return None  # only its own provider reads it
        case Block(kind=BlockKind.ASSISTANT):
            return {"role": "assistant", "content": text}
        case Block(kind=BlockKind.DEVELOPER):
            return {"role": "developer", "content": text}
        case _:
            return {"role": "user", "content": text}


def _tie_answers(items: Iterable[Item]) -> Iterator[Item]:
    """Give the items of one answer of the model a message id, so that they leave a view together.

    The provider refuses reasoning without the item that it led to.
    """
    for is_models, answer in groupby(items, lambda item: item.blocks[0].kind in _MODELS_KINDS):
        shared = {"message_id": uuid4().hex}
        for item in answer:
            blocks = [block.model_copy(update=shared) for block in item.blocks]
            yield replace(item, blocks=blocks) if is_models else item


class _RetryingModel(Model):
    """A model that is asked again with a smaller view where it refuses one as too long."""

    def __init__(self, model: Model, session: CutbankSession) -> None:
        self._model = model
        self._session = session

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002 - as the SDK names it
        *rest: Any,
        **named: Any,
    ) -> ModelResponse:
        self._session.asked = self._model
        try:
            return await self._model.get_response(system_instructions, input, *rest, **named)
        except Exception as error:  # noqa: BLE001 - any other error is raised again
            smaller = await self._session.shrink(error)
            return await self._model.get_response(system_instructions, smaller, *rest, **named)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002 - as the SDK names it
        *rest: Any,
        **named: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        self._session.asked = self._model
        has_begun = False
        try:
            async for event in self._model.stream_response(
                system_instructions, input, *rest, **named
            ):
                has_begun = True
                yield event
        # Each provider has its own error; shrink raises all but an overflow again.
        except Exception as error:
            if has_begun:  # the run has seen a part of the answer
                raise
            input = await self._session.shrink(error)  # noqa: A001 - as the SDK names it
        else:
            return
        async for event in self._model.stream_response(system_instructions, input, *rest, **named):
            yield event

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        return self._model.get_retry_advice(request)

    async def close(self) -> None:
        await self._model.close()


class _RetryingProvider(ModelProvider):
    def __init__(self, provider: ModelProvider, session: CutbankSession) -> None:
        self._provider = provider
        self._session = session

    def get_model(self, model_name: str | None) -> Model:
        return self._session.retry(self._provider.get_model(model_name))

    async def aclose(self) -> None:
        await self._provider.aclose()


class _CallRecorder(RunHooks[Any]):
    def __init__(self, session: CutbankSession) -> None:
        self._session = session

    async def on_llm_end(
        self,
        context: RunContextWrapper[Any],  # noqa: ARG002 - as the SDK calls it
        agent: Agent[Any],  # noqa: ARG002 - as the SDK calls it
        response: ModelResponse,
    ) -> None:
        await self._session.record_response(response)


async def _apply(given: CallModelInputFilter, data: CallModelData[Any]) -> ModelInputData:
    """Return what a filter makes of a call's input, whether it is awaited or not."""
    result = given(data)
    return await result if isawaitable(result) else result
