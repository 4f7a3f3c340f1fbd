"""Serves stores and sessions to event loops: the same verbs, each awaited."""

from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self, Unpack

from ...domain.policies.policy import Policy
from ...projections.history_view import HistoryView
from .agent_loop import AgentLoop
from .compaction.background import Cancellation
from .compaction.options import CompactionOptions
from .compaction.outcome import CompactionOutcome
from .sessions.session_log import CallReport, SessionInfo
from .sessions.session_records import SessionRecords
from .sessions.session_store import SessionStore
from .sessions.stored_session import StoredSession, end_turn, schedule_wake
from .worker_threads import make_async, make_async_iterator, run_async, run_to_end


class AsyncAgentLoop:
    """An AgentLoop with awaitable calls; cancelling one stops its compaction."""

    def __init__(self, loop: AgentLoop) -> None:
        self.loop = loop

    async def prepare(self) -> HistoryView:
        return await run_to_end(self.loop.prepare, self.loop.cancel)

    async def record_call(
        self, view: HistoryView, *, call_id: str | None = None, **call: Unpack[CallReport]
    ) -> None:
        await run_async(partial(self.loop.record_call, view, call_id=call_id, **call))

    async def handle_overflow(self, error: object) -> HistoryView:
        return await run_to_end(lambda: self.loop.handle_overflow(error), self.loop.cancel)


def _wrap_session(session: StoredSession) -> "AsyncSession":
    return AsyncSession(session)


def _wrap_sessions(sessions: list[StoredSession]) -> "list[AsyncSession]":
    return [AsyncSession(session) for session in sessions]


class AsyncRecords:
    """The records of an AsyncSession."""

    def __init__(self, records: SessionRecords) -> None:
        self.sync = records

    put = make_async(SessionRecords.put)
    remove = make_async(SessionRecords.remove)
    get = make_async(SessionRecords.get)
    history = make_async_iterator(SessionRecords.history)
    newest = make_async_iterator(SessionRecords.newest)


class AsyncSession:
    """A session for an event loop: its verbs, awaited, in asyncio and trio alike."""

    def __init__(self, session: StoredSession) -> None:
        self.sync = session
        self.key = session.key
        self.namespace = session.namespace

    def __repr__(self) -> str:
        return f"<async {self.sync!r}>"

    append = make_async(StoredSession.append)
    append_response = make_async(StoredSession.append_response)
    configure = make_async(StoredSession.configure)
    record_call = make_async(StoredSession.record_call)
    cancel_tool_call = make_async(StoredSession.cancel_tool_call)
    close = make_async(StoredSession.close)
    pin = make_async(StoredSession.pin)
    hide = make_async(StoredSession.hide)
    retract = make_async(StoredSession.retract)
    pop = make_async(StoredSession.pop)
    clear = make_async(StoredSession.clear)
    fork = make_async(StoredSession.fork, _wrap_session)
    view = make_async(StoredSession.view)
    blocks = make_async_iterator(StoredSession.blocks)
    find = make_async(StoredSession.find)
    recall = make_async(StoredSession.recall)
    activate = make_async(StoredSession.activate)
    revert = make_async(StoredSession.revert)
    loop = make_async(StoredSession.loop, AsyncAgentLoop)
    end_turn = make_async(end_turn)
    schedule_wake = make_async(schedule_wake)

    async def position(self) -> int:
        """The newest position."""
        return await run_async(lambda: self.sync.position)

    async def info(self) -> SessionInfo:
        """What the session is, and where it is from, as of now."""
        return await run_async(lambda: self.sync.info)

    @property
    def records(self) -> AsyncRecords:
        return AsyncRecords(self.sync.records)

    async def compact(
        self,
        policy: str | Policy | None = None,
        *,
        limit: int | None = None,
        model: str | None = None,
        options: CompactionOptions | None = None,
    ) -> CompactionOutcome:
        """Compact now, as `StoredSession.compact` does; cancelling it stops the compaction."""
        options = options or CompactionOptions()
        cancellation = options.cancellation or Cancellation()
        options = replace(options, cancellation=cancellation)
        return await run_to_end(
            lambda: self.sync.compact(policy, limit=limit, model=model, options=options),
            cancellation.request,
        )


class AsyncStore:
    """A store for an event loop: `async with AsyncStore(cutbank.open(path)) as store`."""

    def __init__(self, store: SessionStore) -> None:
        self.sync = store
        self.name = store.name

    session = make_async(SessionStore.session, _wrap_session)
    sessions = make_async(SessionStore.sessions, _wrap_sessions)
    search = make_async(SessionStore.search)
    costs = make_async(SessionStore.costs)
    delete = make_async(SessionStore.delete)
    erase = make_async(SessionStore.erase)
    apply_retention = make_async(SessionStore.apply_retention)
    backup = make_async(SessionStore.backup)
    apply_settings = make_async(SessionStore.apply_settings)
    set_tokenizer = make_async(SessionStore.set_tokenizer)
    follow_log = make_async(SessionStore.follow_log)
    close = make_async(SessionStore.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
