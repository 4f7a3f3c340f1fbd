"""Completes a retraction, so that no tool call is separated from its result."""

from collections.abc import Mapping
from dataclasses import dataclass

from ....domain.errors import InvalidPositionError
from ....domain.ranges import Ranges
from ....domain.session_events import BlockEvent, ToolCallAbandoned, ToolCalled, ToolReturned
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore
from .group_closure import find_answers


@dataclass(frozen=True, slots=True)
class CompleteRetraction:
    """The blocks to retract, and the calls that are open again as a result."""

    positions: Ranges
    reopened: dict[str, int]


def complete_retraction(
    store: EventStore,
    chain: Chain,
    wanted: Ranges,
    *,
    retracted: Ranges,
    head: int,
    open_calls: Mapping[str, int],
) -> CompleteRetraction:
    """Return everything to retract with the wanted positions.

    A call takes its result along, wherever that is. A result without its call reopens the call.
    """
    if wanted.runs[-1][1] > head:
        raise InvalidPositionError(
            f"#{wanted.runs[-1][1]} does not exist: the session ends at #{head}"
        )
    log = store.read(chain, wanted - retracted)
    blocks = {recorded.position for recorded in log if isinstance(recorded.event, BlockEvent)}
    if not blocks:
        raise InvalidPositionError(f"{wanted} holds no block that can be taken back")
    calls = {recorded.position for recorded in log if isinstance(recorded.event, ToolCalled)}
    answered = {
        recorded.event.call
        for recorded in log
        if isinstance(recorded.event, ToolReturned | ToolCallAbandoned)
    }
    waiting = set(open_calls.values())
    blocks |= find_answers(store, chain, calls - answered - waiting, head, retracted)
    reopened = {}
    for recorded in log:
        event = recorded.event
        if isinstance(event, ToolReturned | ToolCallAbandoned) and event.call not in calls:
            name = (
                event.tool_call_id
                if isinstance(event, ToolCallAbandoned)
                else event.block.tool_call_id
            )
            if name in open_calls or name in reopened:
                # Its id was used again, and two open calls with one id could not be distinguished.
                blocks.add(event.call)
            else:
                reopened[name] = event.call
    return CompleteRetraction(Ranges.of(blocks), reopened)
