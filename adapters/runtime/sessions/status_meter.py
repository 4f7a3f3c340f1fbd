"""What a status bar shows of a session: how full its model's context is, and what was pruned."""

from dataclasses import dataclass

from ....domain.compaction import MAIN
from ....domain.context_limit import ContextLimit
from ....domain.policies.pruning.weighed import Weighed
from ....domain.policies.scored_pruning import ScoredPruning
from ....domain.summaries.notice import SECTION
from ....domain.utilisation import Utilisation
from ...storage.event_log.plain_errors import speaking_plainly
from ..compaction.by_settings import order_by
from .stored_session import StoredSession


@dataclass(frozen=True, slots=True)
class Reading:
    """A session's context as it is now."""

    in_use: Utilisation
    limit: ContextLimit
    """What the context holds, and where that figure is from."""
    weighed: Weighed
    """The messages, and whose the tokens are."""
    policy: str
    notice: str | None
    """What was pruned so far, in the words for people; None where nothing was."""


def measure_context(
    session: StoredSession,
    *,
    limit: int | None = None,
    model: str | None = None,
    lineage: str = MAIN,
) -> Reading:
    """Measure how full the session's context is, at which level, and what was pruned.

    `limit` is what a prompt may have, in tokens; else what `model` holds, or the settings say. The
    levels are those of the agent's policy if it has any, else those of scored-pruning.
    """
    log = session.log
    with speaking_plainly(log.context.name):
        found = log.find_context_limit(limit=limit, model=model, lineage=lineage)
        order = order_by(log.settings, model, limit=found.tokens)
        seen = log.compactor(lineage).planner.seen(order)
    levels = order.policy if isinstance(order.policy, ScoredPruning) else ScoredPruning()
    notice = seen.window.summary.sections.get(SECTION, "") if seen.window.summary else ""
    return Reading(
        in_use=levels.marks.of(seen.window.used, found.tokens),
        limit=found,
        weighed=levels.weighed(seen.window.items),
        policy=order.policy.name,
        notice=notice.strip("[]") or None,
    )


def find_context_limit(
    session: StoredSession,
    *,
    limit: int | None = None,
    model: str | None = None,
    lineage: str = MAIN,
) -> ContextLimit:
    """Return how many tokens a prompt may have, and where that figure is from.

    `limit` where it is given, else the settings, what the log reports, what is known of the model
    (`model`, or the newest call's), and at last a default.
    """
    return session.log.find_context_limit(limit=limit, model=model, lineage=lineage)
