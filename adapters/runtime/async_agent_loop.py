"""The three calls for agents that run in an event loop: the same, in a thread."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from ...projections.history_view import HistoryView
from .agent_loop import AgentLoop

_T = TypeVar("_T")


class AsyncAgentLoop:
    """An AgentLoop whose calls are awaited; whoever cancels one of them stops its compaction."""

    def __init__(self, loop: AgentLoop) -> None:
        self.loop = loop

    async def prepare(self) -> HistoryView:
        """As `AgentLoop.prepare`."""
        return await self._run_in_thread(self.loop.prepare)

    async def record_call(self, view: HistoryView, **call: Any) -> None:
        """As `AgentLoop.record_call`."""
        await self._run_in_thread(lambda: self.loop.record_call(view, **call))

    async def handle_overflow(self, error: object) -> HistoryView:
        """As `AgentLoop.handle_overflow`."""
        return await self._run_in_thread(lambda: self.loop.handle_overflow(error))

    async def _run_in_thread(self, call: Callable[[], _T]) -> _T:
        working = asyncio.ensure_future(asyncio.to_thread(call))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            self.loop.cancel()
            # It leaves everything as it was before it ends: only then is it cancelled.
            await asyncio.wait([working])
            if not working.cancelled():
                working.exception()  # it is about the cancellation
            raise
