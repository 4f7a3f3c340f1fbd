"""Implements the three calls of an agent's loop, for shell scripts and other languages."""

from typing import Annotated

import typer

from ....domain.errors import InvalidSettingError
from ....domain.session_events import Usage
from ....projections.history_view import HistoryView
from ....projections.rendering.catalog import RENDERERS
from ...runtime.agent_loop import AgentLoop
from . import session_json, session_lines
from .database import open_call_session
from .input_text import STDIN_WORD, read_input_text
from .invocation import Invocation
from .printing import print_json, print_text
from .shared_options import SessionArgument

RequestFormat = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="FORMAT",
        help="JSON: neutral, or a request: anthropic, anthropic-cached, openai-chat, "
        "openai-responses.",
    ),
]
ModelOption = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="The model that is asked.")
]
LimitOption = Annotated[
    int | None,
    typer.Option("--limit", metavar="TOKENS", min=1, help="What a prompt of it may have."),
]


def prepare(
    call: Invocation,
    session: SessionArgument,
    *,
    model: ModelOption = None,
    limit: LimitOption = None,
    form: RequestFormat = None,
) -> None:
    """Show what to send to a model now.

    It is compacted first, if the policy says so.
    """
    with open_call_session(call, session) as found:
        loop = found.loop(model=model, limit=limit)
        _print_view(call, loop, loop.prepare(), form)


def record_call(
    call: Invocation,
    session: SessionArgument,
    *,
    at: Annotated[
        int, typer.Option("--at", metavar="POSITION", min=1, help="`at` of the view that was sent.")
    ],
    lineage_version: Annotated[
        int,
        typer.Option("--lineage-version", metavar="N", min=0, help="The view's, as well."),
    ],
    model: ModelOption = None,
    form: RequestFormat = None,
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
    with open_call_session(call, session) as found:
        view = found.view(at=at, lineage_version=lineage_version)
        found.loop(model=model).record_call(
            view, usage=usage, call_id=call_id, renderer=form or "neutral"
        )
    if call.as_json:
        print_json(
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
        print_text(f"recorded: a call that was sent {found.key} as of #{at}{said}")


def handle_overflow(
    call: Invocation,
    session: SessionArgument,
    error: Annotated[
        str,
        typer.Argument(metavar="ERROR", help="What the provider said; - reads what is piped in."),
    ],
    *,
    model: ModelOption = None,
    limit: LimitOption = None,
    form: RequestFormat = None,
) -> None:
    """Show what to send after a refusal for length."""
    text = read_input_text(STDIN_WORD) if error == STDIN_WORD else error
    with open_call_session(call, session) as found:
        loop = found.loop(model=model, limit=limit)
        _print_view(call, loop, loop.handle_overflow(text), form)


def _print_view(call: Invocation, loop: AgentLoop, view: HistoryView, form: str | None) -> None:
    limit, source = loop.request.limit, loop.request.limit_source
    if call.as_json or form is not None:
        known = {"limit": limit, "limit_source": source}
        print_json({**session_json.view_to_json(view, form or "neutral"), **known})
    else:
        print_text(f"a prompt may have {limit:,} tokens ({source.phrase})")
        session_lines.print_view(view)
