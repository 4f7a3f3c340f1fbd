"""Connects the shadow policies of a live session to its loop."""

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
        """Queue a decision about a call for each shadow; return immediately, and raise nothing."""
        for shadow in self.shadows:
            self.watch.submit(shadow, position)


def start_shadows(
    log: SessionLog, policies: Sequence[str | Policy], terms: CompactionTerms, habits: LoopHabits
) -> LoopShadows:
    """Start the shadow policies of a loop, with the agent's options.

    Raises InvalidSettingError if a policy does not exist, or is named twice.
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
    """Return a shadow for each policy, with otherwise the agent's options.

    Raises InvalidSettingError if a policy does not exist, or is named twice.
    """
    shadows: dict[str, Shadow] = {}
    for one in policies:
        label, policy = (one, get_policy(one)) if isinstance(one, str) else (one.name, one)
        if label in shadows:
            raise InvalidSettingError(f"{label} is there twice among the shadows: leave one out")
        # Shadows run in a background thread, where no user callback is called.
        own = replace(terms, policy=policy, tracked_files=None)
        shadows[label] = Shadow(
            StoredSession(log),
            SHADOW_PREFIX + label,
            own,
            once_a_turn=habits.once_a_turn,
            regrowth=habits.regrowth,
        )
    return tuple(shadows.values())
