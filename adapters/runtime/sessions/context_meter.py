"""Measures how full a session's context is, and what was pruned, for a status bar."""

from dataclasses import dataclass

from ....domain.compaction import MAIN_LINEAGE
from ....domain.context_limit import ContextLimit, Utilization
from ....domain.policies.scored_pruning import ScoredPruning, WeighedMessages
from ....domain.summaries.summarizer import NOTICE_SECTION
from ...models.context_limits import resolve_limit
from ...storage.event_log.storage_errors import translate_storage_errors
from ..compaction.from_settings import make_compaction_request
from .stored_session import StoredSession


@dataclass(frozen=True, slots=True)
class ContextMeasurement:
    in_use: Utilization
    limit: ContextLimit
    weighed: WeighedMessages
    """The messages, and the tokens by source."""
    policy: str
    notice: str | None
    """What was pruned so far, as text for users; None if nothing was."""


def measure_context(
    session: StoredSession,
    *,
    limit: int | None = None,
    model: str | None = None,
    lineage: str = MAIN_LINEAGE,
) -> ContextMeasurement:
    """Measure how full the session's context is, at which level, and what was pruned.

    `limit` is the most tokens of a prompt; the default comes from `model` or the settings. The
    levels are those of the agent's policy if it has any, else those of scored-pruning.
    """
    log = session.log
    with translate_storage_errors(log.context.name):
        found = find_context_limit(session, limit=limit, model=model, lineage=lineage)
        request = make_compaction_request(log.settings, model, limit=found.tokens)
        snapshot = log.compactor(lineage).take_snapshot(request)
    levels = request.policy if isinstance(request.policy, ScoredPruning) else ScoredPruning()
    notice = (
        snapshot.window.summary.sections.get(NOTICE_SECTION, "") if snapshot.window.summary else ""
    )
    return ContextMeasurement(
        in_use=levels.level_marks.measure(snapshot.window.used_tokens, found.tokens),
        limit=found,
        weighed=levels.weigh(snapshot.window.items),
        policy=request.policy.name,
        notice=notice.strip("[]") or None,
    )


def find_context_limit(
    session: StoredSession,
    *,
    limit: int | None = None,
    model: str | None = None,
    lineage: str = MAIN_LINEAGE,
) -> ContextLimit:
    """Return how many tokens a prompt may have, and the source of that figure.

    The first of: `limit`, the settings, what the log reports, what is known of the model (`model`,
    or the newest call's), and a default.
    """
    logged = session.log.logged_context(lineage, limit)
    return resolve_limit(session.log.settings, model, logged, limit)
