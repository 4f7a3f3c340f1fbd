"""Condenses the conversations of OpenHands' agents by the view of a log that keeps every event.

    from cutbank.frameworks.openhands import CutbankCondenser
    from openhands.sdk import LLM, Agent, Conversation

    condenser = CutbankCondenser(session="thread-1", database="sessions.db", limit=200_000)
    agent = Agent(llm=LLM(model="openai/gpt-5-mini"), tools=[], condenser=condenser)
    conversation = Conversation(agent, callbacks=[condenser.keep_event], visualizer=None)
    conversation.send_message("Hello")
    conversation.run()
    print(conversation.state.view.events[-1].llm_message.content[0].text)
    condenser.close()

`condenser.log` is the stored session: what left the view is recalled from it.
"""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from operator import or_
from os import urandom
from typing import Any, cast
from uuid import UUID

from openhands.sdk.context.condenser.base import CondenserBase
from openhands.sdk.context.view import View
from openhands.sdk.event import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    CondensationSummaryEvent,
    Event,
    LLMConvertibleEvent,
    MessageEvent,
    ObservationBaseEvent,
    SystemPromptEvent,
)
from openhands.sdk.llm import LLM, TextContent, content_to_str
from pydantic import PrivateAttr

import cutbank
from cutbank import (
    AgentLoop,
    Block,
    BlockKind,
    HistoryView,
    Item,
    NothingToCompactError,
    Ranges,
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

from .framework_adapter import ItemMirror

_PROVIDER = "openhands"
"""Whose items the events are, and the format that recorded calls name."""
_COVERED = re.compile("<conversation-summary [^>]*>")
"""Where a summary says which positions left."""
_SPAN = re.compile(r"#(\d+)(?:-(\d+))?")


@dataclass
class _Call:
    """What the model was sent last, and was not seen to answer."""

    loop: AgentLoop
    view: HistoryView
    llm: LLM | None
    answers: int
    """How many answers of the model were counted before."""
    newest: str
    """The id of the newest event that it was sent."""


class CutbankCondenser(CondenserBase):
    """Keeps each event in a session of cutbank, and condenses where the session is compacted.

    `session` names the stored session, and `database` the file or server that has it. `policy`,
    `limit` and `model` are those of `session.loop()`; without them, the agent's model decides.
    """

    session: str
    database: str = "sessions.db"
    namespace: str = "default"
    policy: str | None = None
    limit: int | None = None
    model: str | None = None
    _owned: SessionStore | None = PrivateAttr(default=None)
    _mirror: ItemMirror | None = PrivateAttr(default=None)
    _events: list[LLMConvertibleEvent] | None = PrivateAttr(default=None)
    """What the conversation shows, as far as this object has seen."""
    _call: _Call | None = PrivateAttr(default=None)

    @property
    def log(self) -> StoredSession:
        """The stored session, with all of its verbs: recall, pin, fork, compact."""
        return self._open().store.session(self.session, namespace=self.namespace)

    def handles_condensation_requests(self) -> bool:
        return True

    def condense(self, view: View, agent_llm: LLM | None = None) -> View | Condensation:
        """Store what is new; condense if the session was compacted, or return what to send.

        After a request for a condensation the session is compacted whatever the policy's threshold.
        Raises ContextOverflowError if the model refused the conversation as too long, and it cannot
        shrink.
        """
        self._events = list(view.events)
        self._record_call()
        log = self.log
        self._store(log, self._events)
        model = self.model or (agent_llm.model if agent_llm else None)
        limit = self.limit or (agent_llm.effective_max_input_tokens if agent_llm else None)
        loop = log.loop(self.policy, limit=limit, model=model)
        newest = view.events[-1].id if view.events else ""
        if not view.unhandled_condensation_request:
            shown = loop.prepare()
        elif self._call and self._call.newest == newest:
            # The model did not answer what it was sent: it refused it.
            said = {"code": "context_length_exceeded", "message": "refused as too long"}
            shown = loop.handle_overflow({"error": said})
        else:
            with suppress(NothingToCompactError):
                log.compact(self.policy, limit=limit, model=model)
            shown = log.view()
        self._call = None
        items = list_items(shown, _PROVIDER)
        if done := _condense(view, items):
            return done
        answers = len(agent_llm.metrics.token_usages) if agent_llm else 0
        self._call = _Call(loop, shown, agent_llm, answers, newest)
        return _show(view, items)

    async def acondense(self, view: View, agent_llm: LLM | None = None) -> View | Condensation:
        """Do the same without blocking the event loop."""
        return await run_async(self.condense, view, agent_llm)

    def keep_event(self, event: Event) -> None:
        """Store an event at once, as a callback of the conversation.

        Without it, what comes after the last call of the model is stored before the next one.
        """
        if self._events is not None and isinstance(event, LLMConvertibleEvent):
            self._record_call()
            self._events.append(event)
            self._store(self.log, self._events)

    def use_store(self, store: SessionStore) -> None:
        """Use an open store, such as one that many conversations share, instead of `database`."""
        self._mirror = ItemMirror(store)

    def close(self) -> None:
        """Close the database, if it was opened here."""
        if self._owned:
            self._owned.close()
        self._owned = self._mirror = None

    def _open(self) -> ItemMirror:
        if self._mirror is None:
            self._owned = cutbank.open(self.database)
            self._mirror = ItemMirror(self._owned)
        return self._mirror

    def _store(self, log: StoredSession, events: Sequence[LLMConvertibleEvent]) -> None:
        """Append the events that the log lacks; take back those that the conversation lacks.

        A conversation may go on from an earlier event, also from one before a condensation.
        """
        for event in events:
            if isinstance(event, SystemPromptEvent):
                tools = [tool.to_openai_tool() for tool in event.tools]
                log.configure(
                    system_prompt="\n\n".join(content_to_str(event.to_llm_message().content)),
                    tools=cast(Any, tools),
                )
        view = log.view()
        summaries = {
            event.id: event.summary
            for event in events
            if isinstance(event, CondensationSummaryEvent) and _is_from(view, event)
        }
        said = {
            event.id: event
            for event in events
            if event.id not in summaries and not isinstance(event, SystemPromptEvent)
        }
        ties = _tie_loops(events)
        left, order = _find_left(summaries.values(), view), list(said)
        kept, same = list[Any](), 0
        for position, item in self._open().read_stored(log):
            if same < len(order) and _get_id(item) == order[same]:
                same += 1
            elif position not in left or _get_id(item) in said:
                continue
            kept.append(item)
        new = [said[id].model_dump(mode="json") for id in order[same:]]
        given = [*kept, *new]

        def read(at: int) -> Item:
            item = cast(dict[str, Any], given[at])
            event = said.get(item["id"]) or cast(LLMConvertibleEvent, Event.model_validate(item))
            return _read_event(event, item, ties.get(event.id))

        self._open().mirror(log, given, read)

    def _record_call(self) -> None:
        """Record what the model was sent last, if it has answered since."""
        call = self._call
        if call is None or call.llm is None:
            return
        answers = call.llm.metrics.token_usages[call.answers :]
        if answers:
            self._call = None
            used = answers[0]
            call.loop.record_call(
                call.view,
                call_id=used.response_id or None,
                model=used.model or None,
                renderer=_PROVIDER,
                usage=Usage(
                    input=used.prompt_tokens - used.cache_read_tokens - used.cache_write_tokens,
                    cache_read=used.cache_read_tokens,
                    cache_write=used.cache_write_tokens,
                    output=used.completion_tokens,
                    reasoning=used.reasoning_tokens,
                ),
            )


def _is_from(view: HistoryView, event: CondensationSummaryEvent) -> bool:
    """Check whether what a summary covers left the log's view; it is a text like any other if not.

    Other condensers write summaries too, and a conversation may return to where it was condensed
    after the log took that back.
    """
    if view.summary is None or not event.id.startswith(_mark(event.summary)):
        return False
    hidden = view.boundary.hidden if view.boundary else Ranges()
    return not _find_covered(event.summary) - (view.summary.covers | hidden)


def _mark(summary: str) -> str:
    """Return how the ids of the events begin that bring this summary."""
    return str(UUID(bytes=sha256(summary.encode()).digest()[:16]))[:18]


def _get_id(item: Any) -> str:
    return cast(str, item["id"]) if isinstance(item, dict) else ""


def _find_left(summaries: Collection[str], view: HistoryView) -> Ranges:
    """Return the positions that a conversation need not have, as they were condensed there."""
    if view.summary is None and not summaries:  # what was condensed left without a summary
        return view.boundary.hidden if view.boundary else Ranges()
    return reduce(or_, map(_find_covered, summaries), Ranges())


def _find_covered(summary: str) -> Ranges:
    """Return the positions that a summary says it covers."""
    mark = _COVERED.search(summary)
    spans = _SPAN.findall(mark[0]) if mark else []
    return Ranges((int(first), int(last or first)) for first, last in spans)


def _condense(view: View, items: Sequence[ViewItem]) -> Condensation | None:
    """Return the event that brings a conversation to what the log shows; None if it is there."""
    summary = items[0].text if items and not items[0].entries else None
    shown = {_get_id(item.json) for item in items}
    gone: set[str] = set()
    is_there = summary is None
    for event in view.events:
        if isinstance(event, CondensationSummaryEvent) and event.summary == summary:
            is_there = True
        elif event.id not in shown and not isinstance(event, SystemPromptEvent):
            gone.add(event.id)
    if is_there and not gone and not view.unhandled_condensation_request:
        return None
    if summary is None or is_there:
        return Condensation(forgotten_event_ids=gone, llm_response_id=_PROVIDER)
    return Condensation(
        id=_mark(summary) + str(UUID(bytes=urandom(16)))[18:],
        forgotten_event_ids=gone,
        summary=summary,
        summary_offset=sum(isinstance(event, SystemPromptEvent) for event in view.events[:1]),
        llm_response_id=_PROVIDER,
    )


def _show(view: View, items: Sequence[ViewItem]) -> View:
    """Return a view whose events say what the log's view shows of them."""
    shortened = {_get_id(item.json): item for item in items if item.is_shortened}
    if not shortened:
        return view
    events = [
        _shorten(event, item.text) if (item := shortened.get(event.id)) else event
        for event in view.events
    ]
    return View(events=events)


def _shorten(event: LLMConvertibleEvent, text: str) -> LLMConvertibleEvent:
    match event:
        case ObservationBaseEvent():
            names = {"tool_name": event.tool_name, "tool_call_id": event.tool_call_id}
            return AgentErrorEvent(id=event.id, source=event.source, error=text, **names)
        case MessageEvent():
            message = event.llm_message.model_copy(update={"content": [TextContent(text=text)]})
            return event.model_copy(update={"llm_message": message, "extended_content": []})
        case _:
            return event


def _tie_loops(events: Sequence[LLMConvertibleEvent]) -> dict[str, str]:
    """Name the answer of the model that each action or observation has to stay together with.

    OpenHands lets the actions of one answer only leave together, and also what follows an action
    with signed thoughts until something else is said.
    """
    ties: dict[str, str] = {}
    loop: str | None = None
    for event in events:
        match event:
            case ActionEvent():
                loop = event.llm_response_id if event.thinking_blocks else loop
                ties[event.id] = loop or event.llm_response_id
            case ObservationBaseEvent():
                if loop:
                    ties[event.id] = loop
            case _:
                loop = None
    return ties


def _read_event(event: LLMConvertibleEvent, item: dict[str, Any], message: str | None) -> Item:
    """Return an event as an item; what has no block of its own is a text of its JSON."""
    said = event.to_llm_message()
    text = "\n".join(content_to_str(said.content))
    if isinstance(event, ObservationBaseEvent):
        is_error = getattr(getattr(event, "observation", None), "is_error", True)
        result = ToolResult(tool_call_id=event.tool_call_id, content=text, is_error=is_error)
        return Item(item, [result], _PROVIDER)
    kind = BlockKind.DEVELOPER
    if said.role == "assistant":
        kind = BlockKind.ASSISTANT
    elif event.source == "user":
        kind = BlockKind.USER
    blocks: list[Block | ToolCall] = []
    if said.reasoning_content:
        blocks.append(Block.thinking(said.reasoning_content))
    if text:
        blocks.append(Block(kind=kind, text=text))
    blocks += [
        ToolCall(tool_call_id=call.id, name=call.name, arguments=call.arguments)
        for call in said.tool_calls or ()
    ]
    tied = [block.model_copy(update={"message_id": message}) for block in blocks]
    return Item(item, tied or [Block(kind=kind)], _PROVIDER)


def _render(view: ViewContent) -> dict[str, Any]:
    """Render a view as the JSON of its events, for audits."""
    return {"events": [item.json or {"summary": item.text} for item in list_items(view, _PROVIDER)]}


register_renderer(_PROVIDER, _render)
