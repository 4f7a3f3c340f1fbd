"""What a status bar shows of a session: how full its model's context is, and what was pruned."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....domain.context_limit import ContextLimit
from ....domain.policies.pruning.weighed import Weighed
from ....domain.policies.scored_pruning import ScoredPruning
from ....domain.summaries.notice import SECTION
from ....domain.utilisation import Utilisation
from ..compaction.by_settings import order_by

if TYPE_CHECKING:
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


def reading(
    session: "StoredSession", *, model: str | None = None, limit: int | None = None, lineage: str
) -> Reading:
    """The levels are those of the agent's policy, if it has any; else of scored-pruning."""
    found = session.context_limit(limit=limit, model=model, lineage=lineage)
    order = order_by(session.store.settings, model, limit=found.tokens)
    seen = session.compactor(lineage).planner.seen(order)
    levels = order.policy if isinstance(order.policy, ScoredPruning) else ScoredPruning()
    told = seen.window.summary.sections.get(SECTION, "") if seen.window.summary else ""
    return Reading(
        in_use=levels.marks.of(seen.window.used, found.tokens),
        limit=found,
        weighed=levels.weighed(seen.window.items),
        policy=order.policy.name,
        notice=told.strip("[]") or None,
    )
