"""Implements the calls of an agent's loop, for shell scripts, and `meter` for status bars."""

from functools import partial

from ....domain.context_limit import Color
from ....domain.session_events import Usage
from ....projections.history_view import HistoryView
from ...runtime.agent_loop import AgentLoop
from ...runtime.compaction.event_sink import stats
from ...runtime.sessions.context_meter import measure_context
from ..command_line.options import LINEAGE, REQUEST_FORMAT, SESSION, STDIN_WORD, read_input_text
from ..command_line.printing import format_bar, pick, print_text
from ..command_line.sessions import name_to_json, open_call_session
from ..command_line.verbs import Answer, Invocation, argument, option
from ..command_line.views import answer_view, check_format

MODEL = option("--model NAME", "The model that is asked.")
LIMIT = option("--limit TOKENS", "What a prompt of it may have.", min=1)

TERMINAL_COLORS = {
    Color.GREEN: "green",
    Color.YELLOW: "yellow",
    Color.ORANGE: (255, 135, 0),
    Color.RED: "red",
}


def prepare(
    call: Invocation,
    session: str = SESSION,
    model: str | None = MODEL,
    limit: int | None = LIMIT,
    form: str | None = REQUEST_FORMAT,
) -> Answer:
    """It is compacted first, if the policy says so."""
    with open_call_session(call, session) as found:
        loop = found.loop(model=model, limit=limit)
        return _answer_view(loop, loop.prepare(), form)


def record_call(
    call: Invocation,
    session: str = SESSION,
    *,
    at: int = option("--at POSITION", "`at` of the view that was sent.", ..., min=1),
    lineage_version: int = option("--lineage-version N", "The view's, as well.", ..., min=0),
    model: str | None = MODEL,
    form: str | None = REQUEST_FORMAT,
    call_id: str | None = option("--call ID", "The provider's name of the answer."),
    uncached: int | None = option("--input", "Tokens of the prompt that no cache held.", min=0),
    cache_read: int | None = option("--cache-read", "Tokens that the cache held.", min=0),
    cache_write: int | None = option("--cache-write", "Tokens that were put into it.", min=0),
    output: int | None = option("--output", "Tokens answered.", min=0),
) -> Answer:
    """Later counts build upon what it reports."""
    reported = (uncached, cache_read, cache_write, output)
    usage = None
    if any(one is not None for one in reported):
        usage = Usage(input=uncached, cache_read=cache_read, cache_write=cache_write, output=output)
    check_format(form)
    with open_call_session(call, session) as found:
        view = found.view(at=at, lineage_version=lineage_version)
        found.loop(model=model).record_call(
            view, usage=usage, call_id=call_id, renderer=form or "neutral"
        )
    context = usage.context if usage else None
    document = {
        **name_to_json(found),
        "at": at,
        "lineage_version": lineage_version,
        "fingerprint": view.fingerprint,
        "context": context,
    }
    size = "" if context is None else f", {context:,} tokens"
    return Answer(document, f"recorded: a call that was sent {found.key} as of #{at}{size}")


def handle_overflow(
    call: Invocation,
    session: str = SESSION,
    error: str = argument("ERROR", "The provider's error; - reads standard input."),
    *,
    model: str | None = MODEL,
    limit: int | None = LIMIT,
    form: str | None = REQUEST_FORMAT,
) -> Answer:
    text = read_input_text(STDIN_WORD) if error == STDIN_WORD else error
    with open_call_session(call, session) as found:
        loop = found.loop(model=model, limit=limit)
        return _answer_view(loop, loop.handle_overflow(text), form)


def meter(
    call: Invocation,
    session: str = SESSION,
    model: str | None = MODEL,
    limit: int | None = LIMIT,
    lineage: str = LINEAGE,
) -> Answer:
    with open_call_session(call, session) as found:
        found.log.check_lineage(lineage)
        read = measure_context(found, model=model, limit=limit, lineage=lineage)
    in_use, counted = read.in_use, stats(read.weighed)
    kinds = ("user_tokens", "assistant_tokens", "tool_result_tokens")
    bar = f"{format_bar(in_use.share)} {in_use.share:.1%}, {in_use.level}"
    phrase = read.limit.source.phrase
    return Answer(
        {
            **name_to_json(found),
            "lineage": lineage,
            **pick(read, "policy tokens=in_use.tokens limit=in_use.limit"),
            **pick(read, "limit_source=limit.source utilisation=in_use.share"),
            **pick(in_use, "level colour=color"),
            **{kind: counted[kind] for kind in kinds},
            "notice": read.notice,
        },
        partial(print_text, bar, fg=TERMINAL_COLORS[in_use.color]),
        f"{in_use.tokens:,} of {in_use.limit:,} tokens are in use ({phrase})",
        *([read.notice] if read.notice else []),
    )


def _answer_view(loop: AgentLoop, view: HistoryView, form: str | None) -> Answer:
    limit, source = loop.request.limit, loop.request.limit_source
    line = f"a prompt may have {limit:,} tokens ({source.phrase})"
    return answer_view(view, form, line, limit=limit, limit_source=source)
