"""Implements `wake`: schedules when a sleeping agent continues, so that it is not idle."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from ....domain.errors import InvalidSettingError
from .database import open_call_session
from .invocation import Invocation
from .printing import print_json, print_text
from .shared_options import SessionArgument
from .time_parsing import parse_moment, parse_span


def wake(
    call: Invocation,
    session: SessionArgument,
    *,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="2026-01-31T09:00, by your clock, or with +00:00."
        ),
    ] = None,
    after: Annotated[
        str | None, typer.Option("--in", metavar="SPAN", help="From now: 90s, 20m, 2h or 1d.")
    ] = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Take back what was scheduled.")] = False,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="What it waits for.")
    ] = None,
) -> None:
    """Say when the agent goes on by itself."""
    if (at is not None) + (after is not None) + cancel != 1:
        raise InvalidSettingError("wake takes one of --at TIME, --in SPAN and --cancel")
    with open_call_session(call, session) as found:
        now = found.log.events.clock()
        moment = None if cancel else _parse_moment(now, at, after)
        if moment is not None and moment <= now:
            raise InvalidSettingError(f"{moment.isoformat(timespec='seconds')} is past: say when")
        found.schedule_wake(moment, reason)
        position = found.position
    if call.as_json:
        print_json(
            {
                "session": found.key,
                "namespace": found.namespace,
                "wake_at": moment.astimezone(UTC).isoformat() if moment else None,
                "position": position,
            }
        )
    elif moment is None:
        print_text(f"{found.key} waits for no moment any more")
    else:
        when = moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        print_text(f"{found.key} goes on at {when}; until then it is not idle")


def _parse_moment(now: datetime, at: str | None, after: str | None) -> datetime:
    if at is not None:
        return parse_moment(at, "--at")
    try:
        return now + parse_span(after or "", "--in")
    except OverflowError:
        raise InvalidSettingError(f"{after} is further away than a calendar goes") from None
