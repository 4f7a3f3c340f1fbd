"""The verb for status bars: how full a session's context is, in a number, a level and a colour."""

from ....domain.utilisation import Colour
from ....projections.hook_payloads import stats
from ...runtime.sessions.status_meter import measure_context
from .cli_looping import Limit, Model
from .database import opened_session
from .invocation import Invocation
from .printing import say, say_json
from .words import Lineage, SessionName

WIDTH = 40
"""Characters of the bar."""
ON_SCREEN = {
    Colour.GREEN: "green",
    Colour.YELLOW: "yellow",
    Colour.ORANGE: (255, 135, 0),
    Colour.RED: "red",
}


def meter(
    call: Invocation,
    session: SessionName,
    *,
    model: Model = None,
    limit: Limit = None,
    lineage: Lineage = "main",
) -> None:
    """Show how full a session's context is."""
    with opened_session(call, session) as found:
        found.log.check_lineage(lineage)
        read = measure_context(found, model=model, limit=limit, lineage=lineage)
    in_use = read.in_use
    if call.as_json:
        counted = stats(read.weighed)
        say_json(
            {
                "session": found.key,
                "namespace": call.namespace,
                "lineage": lineage,
                "policy": read.policy,
                "tokens": in_use.tokens,
                "limit": in_use.limit,
                "limit_source": read.limit.source,
                "utilisation": in_use.share,
                "level": in_use.level,
                "colour": in_use.colour,
                "user_tokens": counted["user_tokens"],
                "assistant_tokens": counted["assistant_tokens"],
                "tool_result_tokens": counted["tool_result_tokens"],
                "notice": read.notice,
            }
        )
        return
    bar = ("#" * min(WIDTH, int(in_use.share * WIDTH))).ljust(WIDTH, ".")
    say(f"[{bar}] {in_use.share:.1%}, {in_use.level}", fg=ON_SCREEN[in_use.colour])
    whole = f"{in_use.limit:,} tokens are in use ({read.limit.source.phrase})"
    say(f"{in_use.tokens:,} of {whole}")
    if read.notice:
        say(read.notice)
