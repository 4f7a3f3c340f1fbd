"""What a status bar shows of a session: how full its model's context is, and what was pruned."""

from dataclasses import dataclass

from ....domain.compaction import MAIN_LINEAGE
from ....domain.context_limit import ContextLimit
from ....domain.policies.pruning.weighed_messages import WeighedMessages
from ....domain.policies.scored_pruning import ScoredPruning
from ....domain.summaries.notice import NOTICE_SECTION
from ....domain.utilization import Utilization
from ...storage.event_log.storage_errors import translate_storage_errors
from ..compaction.from_settings import make_compaction_request
from .stored_session import StoredSession


@dataclass(frozen=True, slots=True)
class ContextMeasurement:
    """A session's context as it is now."""

    in_use: Utilization
    limit: ContextLimit
    """What the context holds, and where that figure is from."""
    weighed: WeighedMessages
    """The messages, and whose the tokens are."""
    policy: str
    notice: str | None
    """What was pruned so far, in the words for people; None where nothing was."""


def measure_context(
    session: StoredSession,
    *,
    limit: int | None = None,
    model: str | None = None,
    lineage: str = MAIN_LINEAGE,
) -> ContextMeasurement:
    """Measure how full the session's context is, at which level, and what was pruned.

    `limit` is what a prompt may have, in tokens; else what `model` holds, or the settings say. The
    levels are those of the agent's policy if it has any, else those of scored-pruning.
    """
    log = session.log
    with translate_storage_errors(log.context.name):
        found = log.find_context_limit(limit=limit, model=model, lineage=lineage)
        order = make_compaction_request(log.settings, model, limit=found.tokens)
        seen = log.compactor(lineage).planner.take_snapshot(order)
    levels = order.policy if isinstance(order.policy, ScoredPruning) else ScoredPruning()
    notice = seen.window.summary.sections.get(NOTICE_SECTION, "") if seen.window.summary else ""
    return ContextMeasurement(
        in_use=levels.level_marks.measure(seen.window.used_tokens, found.tokens),
        limit=found,
        weighed=levels.weigh(seen.window.items),
        policy=order.policy.name,
        notice=notice.strip("[]") or None,
    )


def find_context_limit(
    session: StoredSession,
    *,
    limit: int | None = None,
    model: str | None = None,
    lineage: str = MAIN_LINEAGE,
) -> ContextLimit:
    """Return how many tokens a prompt may have, and where that figure is from.

    `limit` where it is given, else the settings, what the log reports, what is known of the model
    (`model`, or the newest call's), and at last a default.
    """
    return session.log.find_context_limit(limit=limit, model=model, lineage=lineage)
