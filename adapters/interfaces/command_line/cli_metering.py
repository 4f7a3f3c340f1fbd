"""Implements `meter`: shows how full a session's context is, for status bars."""

from ....domain.utilization import Color
from ....projections.hook_payloads import stats
from ...runtime.sessions.context_meter import measure_context
from .cli_looping import LimitOption, ModelOption
from .database import open_call_session
from .invocation import Invocation
from .printing import print_json, print_text
from .shared_options import LineageOption, SessionArgument

_BAR_CELLS = 40
TERMINAL_COLORS = {
    Color.GREEN: "green",
    Color.YELLOW: "yellow",
    Color.ORANGE: (255, 135, 0),
    Color.RED: "red",
}


def meter(
    call: Invocation,
    session: SessionArgument,
    *,
    model: ModelOption = None,
    limit: LimitOption = None,
    lineage: LineageOption = "main",
) -> None:
    """Show how full a session's context is."""
    with open_call_session(call, session) as found:
        found.log.check_lineage(lineage)
        read = measure_context(found, model=model, limit=limit, lineage=lineage)
    in_use = read.in_use
    if call.as_json:
        counted = stats(read.weighed)
        print_json(
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
                "colour": in_use.color,
                "user_tokens": counted["user_tokens"],
                "assistant_tokens": counted["assistant_tokens"],
                "tool_result_tokens": counted["tool_result_tokens"],
                "notice": read.notice,
            }
        )
        return
    bar = ("#" * min(_BAR_CELLS, int(in_use.share * _BAR_CELLS))).ljust(_BAR_CELLS, ".")
    print_text(f"[{bar}] {in_use.share:.1%}, {in_use.level}", fg=TERMINAL_COLORS[in_use.color])
    whole = f"{in_use.limit:,} tokens are in use ({read.limit.source.phrase})"
    print_text(f"{in_use.tokens:,} of {whole}")
    if read.notice:
        print_text(read.notice)
