"""The policies that decide beside a live session, as its loop is told."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....domain.errors import InvalidSettingError
from ....domain.policies.policy import Policy
from ....domain.terms import Terms
from ...settings.policy_catalog import policy_named
from .new_lineage import SHADOW
from .shadow import Shadow

if TYPE_CHECKING:
    from ...runtime.agent_loop import Habits
    from ...runtime.sessions.stored_session import StoredSession


def shadows_of(
    session: "StoredSession", policies: Sequence[str | Policy], terms: Terms, habits: "Habits"
) -> tuple[Shadow, ...]:
    """A shadow for each policy, on the agent's own terms but for that.

    Raises InvalidSettingError for a policy that there is not, or that is there twice.
    """
    shadows: dict[str, Shadow] = {}
    for one in policies:
        label, policy = (one, policy_named(one, {})) if isinstance(one, str) else (one.name, one)
        if label in shadows:
            raise InvalidSettingError(f"{label} is there twice among the shadows: leave one out")
        # Nobody's program is asked from a thread of ours.
        own = replace(terms, policy=policy, tracked_files=None)
        shadows[label] = Shadow(
            session,
            SHADOW + label,
            own,
            once_a_turn=habits.once_a_turn,
            regrowth=habits.regrowth,
        )
    return tuple(shadows.values())
