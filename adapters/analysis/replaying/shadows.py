"""The policies that decide beside a live session, as its loop is told."""

from collections.abc import Sequence
from dataclasses import replace

from ....domain.compaction_terms import CompactionTerms
from ....domain.errors import InvalidSettingError
from ....domain.policies.policy import Policy
from ...runtime.compaction.options import LoopHabits
from ...runtime.sessions.session_log import SessionLog
from ...runtime.sessions.store_context import StoreContext
from ...runtime.sessions.stored_session import StoredSession
from ...settings.policy_catalog import get_policy
from .new_lineage import SHADOW_PREFIX
from .shadow import Shadow
from .shadow_worker import ShadowWorker


class LoopShadows:
    """The shadow policies of one loop, decided in the thread of their store."""

    def __init__(self, watch: ShadowWorker, shadows: Sequence[Shadow]) -> None:
        self.watch = watch
        self.shadows = tuple(shadows)

    def decide(self, position: int) -> None:
        """Have each shadow decide about a call, soon; returns at once, and raises nothing."""
        for shadow in self.shadows:
            self.watch.submit(shadow, position)


def start_shadows(
    log: SessionLog, policies: Sequence[str | Policy], terms: CompactionTerms, habits: LoopHabits
) -> LoopShadows:
    """Start the shadow policies of a loop, on the agent's own terms.

    Raises InvalidSettingError for a policy that does not exist, or is named twice.
    """
    return LoopShadows(shadow_watch_of(log.context), make_shadows(log, policies, terms, habits))


def shadow_watch_of(context: StoreContext) -> ShadowWorker:
    """Return the thread of a store's shadows, which starts with the first of them."""
    with context.starting:
        for work in context.background:
            if isinstance(work, ShadowWorker):
                return work
        watch = ShadowWorker()
        context.background.append(watch)
        return watch


def make_shadows(
    log: SessionLog, policies: Sequence[str | Policy], terms: CompactionTerms, habits: LoopHabits
) -> tuple[Shadow, ...]:
    """A shadow for each policy, on the agent's own terms but for that.

    Raises InvalidSettingError for a policy that there is not, or that is there twice.
    """
    shadows: dict[str, Shadow] = {}
    for one in policies:
        label, policy = (one, get_policy(one)) if isinstance(one, str) else (one.name, one)
        if label in shadows:
            raise InvalidSettingError(f"{label} is there twice among the shadows: leave one out")
        # Nobody's program is asked from a thread of ours.
        own = replace(terms, policy=policy, tracked_files=None)
        shadows[label] = Shadow(
            StoredSession(log),
            SHADOW_PREFIX + label,
            own,
            once_a_turn=habits.once_a_turn,
            regrowth=habits.regrowth,
        )
    return tuple(shadows.values())
