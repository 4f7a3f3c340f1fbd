"""The three calls of an agent's loop, for agents that are shell scripts, or of another language."""

from typing import Annotated

import typer

from ....domain.errors import InvalidSettingError
from ....domain.session_events import Usage
from ....projections.history_view import HistoryView
from ....projections.rendering.catalog import RENDERERS
from ...runtime.agent_loop import AgentLoop
from . import session_json, session_lines
from .database import opened_session
from .given_text import PIPED, read_text
from .invocation import Invocation
from .printing import say, say_json
from .words import SessionName

Form = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="FORMAT",
        help="JSON: neutral, or a request: anthropic, anthropic-cached, openai-chat, "
        "openai-responses.",
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="The model that is asked.")
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="TOKENS", min=1, help="What a prompt of it may have."),
]


def prepare(
    call: Invocation,
    session: SessionName,
    *,
    model: Model = None,
    limit: Limit = None,
    form: Form = None,
) -> None:
    """Show what to send to a model now.

    It is compacted first, if the policy says so.
    """
    with opened_session(call, session) as found:
        loop = found.loop(model=model, limit=limit)
        _say(call, loop, loop.prepare(), form)


def record_call(
    call: Invocation,
    session: SessionName,
    *,
    at: Annotated[
        int, typer.Option("--at", metavar="POSITION", min=1, help="`at` of the view that was sent.")
    ],
    lineage_version: Annotated[
        int, typer.Option("--lineage-version", metavar="N", min=0, help="The view's, as well.")
    ],
    model: Model = None,
    form: Form = None,
    call_id: Annotated[
        str | None, typer.Option("--call", metavar="ID", help="The provider's name of the answer.")
    ] = None,
    uncached: Annotated[
        int | None, typer.Option("--input", min=0, help="Tokens of the prompt that no cache held.")
    ] = None,
    cache_read: Annotated[
        int | None, typer.Option("--cache-read", min=0, help="Tokens that the cache held.")
    ] = None,
    cache_write: Annotated[
        int | None, typer.Option("--cache-write", min=0, help="Tokens that were put into it.")
    ] = None,
    output: Annotated[int | None, typer.Option("--output", min=0, help="Tokens answered.")] = None,
) -> None:
    """Record that a model answered to a view.

    Later counts build upon what it reports.
    """
    reported = (uncached, cache_read, cache_write, output)
    usage = None
    if any(one is not None for one in reported):
        usage = Usage(input=uncached, cache_read=cache_read, cache_write=cache_write, output=output)
    if form is not None and form not in RENDERERS:
        raise InvalidSettingError(f"no format {form!r}; there are {', '.join(RENDERERS)}")
    with opened_session(call, session) as found:
        view = found.view(at=at, lineage_version=lineage_version)
        found.loop(model=model).record_call(
            view, usage=usage, call_id=call_id, renderer=form or "neutral"
        )
    if call.as_json:
        say_json(
            {
                "session": found.key,
                "namespace": call.namespace,
                "at": at,
                "lineage_version": lineage_version,
                "fingerprint": view.fingerprint,
                "context": usage.context if usage else None,
            }
        )
    else:
        said = f", {usage.context:,} tokens" if usage and usage.context is not None else ""
        say(f"recorded: a call that was sent {found.key} as of #{at}{said}")


def overflowed(
    call: Invocation,
    session: SessionName,
    error: Annotated[
        str,
        typer.Argument(metavar="ERROR", help="What the provider said; - reads what is piped in."),
    ],
    *,
    model: Model = None,
    limit: Limit = None,
    form: Form = None,
) -> None:
    """Show what to send after a refusal for length."""
    text = read_text(PIPED) if error == PIPED else error
    with opened_session(call, session) as found:
        loop = found.loop(model=model, limit=limit)
        _say(call, loop, loop.handle_overflow(text), form)


def _say(call: Invocation, loop: AgentLoop, view: HistoryView, form: str | None) -> None:
    limit, source = loop.order.limit, loop.order.limit_source
    if call.as_json or form is not None:
        known = {"limit": limit, "limit_source": source}
        say_json({**session_json.viewed(view, form or "neutral"), **known})
    else:
        say(f"a prompt may have {limit:,} tokens ({source.phrase})")
        session_lines.say_view(view)
