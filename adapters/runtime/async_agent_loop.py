"""Offers an agent loop's calls to agents that run in an event loop, each call in a thread."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from ...projections.history_view import HistoryView
from .agent_loop import AgentLoop

_T = TypeVar("_T")


class AsyncAgentLoop:
    """An AgentLoop with awaitable calls; cancelling one stops its compaction."""

    def __init__(self, loop: AgentLoop) -> None:
        self.loop = loop

    async def prepare(self) -> HistoryView:
        return await self._run_in_thread(self.loop.prepare)

    async def record_call(self, view: HistoryView, **call: Any) -> None:
        await self._run_in_thread(lambda: self.loop.record_call(view, **call))

    async def handle_overflow(self, error: object) -> HistoryView:
        return await self._run_in_thread(lambda: self.loop.handle_overflow(error))

    async def _run_in_thread(self, call: Callable[[], _T]) -> _T:
        working = asyncio.ensure_future(asyncio.to_thread(call))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            self.loop.cancel()
            # The call puts everything back before it ends; only then is the task cancelled.
            await asyncio.wait([working])
            if not working.cancelled():
                working.exception()  # the cancellation is the error to raise
            raise
