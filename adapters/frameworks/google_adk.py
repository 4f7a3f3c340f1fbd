"""Keeps the sessions of Google's Agent Development Kit in a log, and sends models their view.

    import asyncio
    from google.adk.agents import Agent
    from google.adk.apps import App
    from google.adk.runners import Runner
    from cutbank.frameworks.google_adk import CutbankPlugin, CutbankSessionService

    async def main():
        agent = Agent(name="helper", model="gemini-2.5-flash", instruction="Be brief.")
        app = App(name="demo", root_agent=agent, plugins=[CutbankPlugin(limit=200_000)])
        async with CutbankSessionService("sessions.db") as service:
            runner = Runner(app=app, session_service=service)
            for event in await runner.run_debug("Hello", session_id="session-1", quiet=True):
                print(event.content.parts[0].text)

    asyncio.run(main())

`service.log(app_name=..., user_id=..., session_id=...)` is the stored session.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from google.adk.agents import LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
from google.adk.events import Event, EventActions
from google.adk.events.event_actions import EventCompaction
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins import BasePlugin
from google.genai import types

import cutbank
from cutbank import (
    AgentLoop,
    CompactionOptions,
    HistoryView,
    NotFoundError,
    NothingToCompactError,
    Plan,
    Policy,
    StoredSession,
    Summarizer,
    Window,
    recognize_overflow,
    register_renderer,
    run_async,
)

from .framework_adapter import append_items
from .google_adk_events import (
    ADK_PROVIDER,
    read_event,
    read_usage_metadata,
    render_contents,
    select_contents,
)
from .google_adk_sessions import CutbankSessionService

_HANDLES = re.compile(r" \(#[^()]*\)")
"""What a summary says of positions, which are of no use outside of their session."""
__all__ = ["CutbankPlugin", "CutbankSessionService", "CutbankSummarizer"]


@dataclass
class _Call:
    """A call of a model that has not answered yet."""

    loop: AgentLoop
    view: HistoryView
    contents: Sequence[types.Content]
    """What ADK would send."""
    is_whole: bool = False
    """Whether the model is sent the view, and nothing else."""


class CutbankPlugin(BasePlugin):
    """Sends models the view of a session, compacted before if the policy asks for it.

    The runner's session service has to be a CutbankSessionService; other sessions, such as those of
    an agent that a tool runs, are sent as they are. `policy`, `limit` and `model` are those of
    `session.loop()`; the model is the agent's, if none is given.
    """

    def __init__(
        self,
        *,
        policy: str | Policy | None = None,
        limit: int | None = None,
        model: str | None = None,
        name: str = "cutbank",
    ) -> None:
        super().__init__(name)
        self._policy, self._limit, self._model = policy, limit, model
        self._calls: dict[tuple[str, str], _Call] = {}

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> None:
        """Put the view in the place of the history."""
        service = callback_context.get_invocation_context().session_service
        if not isinstance(service, CutbankSessionService):
            return
        session = callback_context.session
        try:
            log = await run_async(
                service.log,
                app_name=session.app_name,
                user_id=session.user_id,
                session_id=session.id,
            )
        except NotFoundError:
            return
        loop, view = await run_async(self._prepare, log, llm_request)
        call = _Call(loop, view, llm_request.contents)
        self._calls[_name_call(callback_context)] = call
        _serve(call, callback_context, llm_request)

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """Compact and ask once more if the model refused the request as too long."""
        call = self._calls.get(_name_call(callback_context))
        agent = callback_context.get_invocation_context().agent
        if call is None or not isinstance(agent, LlmAgent) or recognize_overflow(error) is None:
            return None
        call.view = await run_async(call.loop.handle_overflow, error)
        _serve(call, callback_context, llm_request)
        answer = None
        async for response in agent.canonical_model.generate_content_async(llm_request):
            answer = response
        return answer

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> None:
        """Record which view the model was sent, and the tokens that it took."""
        used = llm_response.usage_metadata
        if llm_response.partial or used is None:
            return
        call = self._calls.pop(_name_call(callback_context), None)
        if call is not None and call.is_whole:
            await run_async(
                call.loop.record_call,
                call.view,
                renderer=ADK_PROVIDER,
                usage=read_usage_metadata(used),
            )

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Forget calls of this run that had no answer."""
        for name in [one for one in self._calls if one[0] == invocation_context.invocation_id]:
            del self._calls[name]

    def _prepare(self, log: StoredSession, request: LlmRequest) -> tuple[AgentLoop, HistoryView]:
        config = request.config
        instruction = config.system_instruction
        declared: list[Any] = [
            one.model_dump(mode="json", by_alias=True, exclude_none=True)
            for tool in config.tools or []
            if isinstance(tool, types.Tool)
            for one in tool.function_declarations or []
        ]
        log.configure(
            system_prompt=instruction if isinstance(instruction, str) else None, tools=declared
        )
        model = self._model or request.model
        loop = log.loop(self._policy, limit=self._limit, model=model)
        return loop, loop.prepare()


class CutbankSummarizer(BaseEventsSummarizer):
    """Summarizes events where ADK's own compaction asks for it, whatever the session service.

    `summarizers` are tried in order before those of the settings, and `tokens` is the most that a
    summary may take. Where a CutbankPlugin sends the view, none of this is needed.
    """

    def __init__(
        self, *, summarizers: Sequence[Summarizer] | None = None, tokens: int = 2_000
    ) -> None:
        self._summarizers, self._tokens = summarizers, tokens

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        """Return an event that takes the place of these; None if it would not be smaller."""
        if not events:
            return None
        text = await run_async(self._summarize, events)
        if text is None:
            return None
        compaction = EventCompaction(
            start_timestamp=events[0].timestamp,
            end_timestamp=events[-1].timestamp,
            compacted_content=types.Content(role="model", parts=[types.Part(text=text)]),
        )
        return Event(
            author="user",
            actions=EventActions(compaction=compaction),
            invocation_id=Event.new_id(),
        )

    def _summarize(self, events: Sequence[Event]) -> str | None:
        """Summarize events in a store of their own, as the log may be another service's."""
        with cutbank.open(":memory:") as store:
            session = store.session("events")
            append_items(store, session, [read_event(event) for event in events])
            session.append(cutbank.Block.user("Go on."))  # a view is never empty
            options = CompactionOptions(summarizers=self._summarizers)
            try:
                session.compact(_Everything(self._tokens), limit=2**30, options=options)
            except NothingToCompactError:
                return None
            summary = session.view().summary
        return _HANDLES.sub("", summary.text) if summary else None


@dataclass(frozen=True)
class _Everything:
    """Cuts before the newest block."""

    summary_tokens: int
    name: ClassVar[str] = "google-adk"

    def plan(self, window: Window) -> Plan:
        last = window.items[-1].position
        return Plan(last, "ADK asked for it", self.summary_tokens)


def _name_call(context: CallbackContext) -> tuple[str, str]:
    return context.invocation_id, context.agent_name


def _serve(call: _Call, context: CallbackContext, request: LlmRequest) -> None:
    events = context.session.events
    request.contents, call.is_whole = select_contents(call.contents, events, call.view)


register_renderer(ADK_PROVIDER, render_contents)
