"""The verb of agents that sleep: until they go on by themselves, nobody takes them for idle."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from ...domain.errors import InvalidSettingError
from .database import opened_session
from .invocation import Invocation
from .printing import say, say_json
from .words import SessionName

_SPAN = re.compile(r"(\d{1,9}(?:\.\d+)?)\s*([smhd]?)", re.IGNORECASE)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def wake(
    call: Invocation,
    session: SessionName,
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
    with opened_session(call, session) as found:
        now = found.store.events.clock()
        moment = None if cancel else _moment(at) if at is not None else _after(now, after or "")
        if moment is not None and moment <= now:
            raise InvalidSettingError(f"{moment.isoformat(timespec='seconds')} is past: say when")
        found.schedule_wake(moment, reason)
        position = found.position
    if call.as_json:
        say_json(
            {
                "session": found.key,
                "namespace": found.namespace,
                "wake_at": moment.astimezone(UTC).isoformat() if moment else None,
                "position": position,
            }
        )
    elif moment is None:
        say(f"{session} waits for no moment any more")
    else:
        when = moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        say(f"{session} goes on at {when}; until then it is not idle")


def _moment(text: str) -> datetime:
    """A moment as people write it; one without a zone is by the clock on their wall."""
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):
        raise InvalidSettingError(
            f"--at takes a date and a time as 2026-01-31T09:00, not {text!r}"
        ) from None


def _after(now: datetime, text: str) -> datetime:
    said = _SPAN.fullmatch(text.strip())
    if said is None:
        raise InvalidSettingError(f"--in takes a span as 90s, 20m, 2h or 1d, not {text!r}")
    try:
        return now + timedelta(seconds=float(said[1]) * _SECONDS[said[2].lower()])
    except OverflowError:
        raise InvalidSettingError(f"{text} is further away than a calendar goes") from None
